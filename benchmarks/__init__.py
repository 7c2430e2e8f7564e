"""The same graphs on tracegraph and langgraph, measured alternately. Run with ``python -m benchmarks``."""
