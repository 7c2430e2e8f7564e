"""A saver in dictionaries, for tests, notebooks and runs whose threads need not outlive the process."""

from tracegraph.checkpoint.memory.saver import InMemorySaver

MemorySaver = InMemorySaver
"""The older name."""

__all__ = ["InMemorySaver", "MemorySaver"]
