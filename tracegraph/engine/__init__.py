"""The sans-IO core: reports in, decisions (actions and events) out."""
