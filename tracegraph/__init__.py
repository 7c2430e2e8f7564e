"""Stateful graphs of steps, decided by an engine without I/O and seen through one stream of events."""
