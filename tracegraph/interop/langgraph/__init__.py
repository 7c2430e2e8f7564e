"""Threads from LangGraph's checkpoint databases; LangGraph need not be installed."""

from tracegraph.interop.langgraph.errors import SourceError, ThreadRefusedError
from tracegraph.interop.langgraph.importing import Outcome, Rules, import_thread
from tracegraph.interop.langgraph.source import Source, is_address, open_source

__all__ = ["Outcome", "Rules", "Source", "SourceError", "ThreadRefusedError", "import_thread", "is_address", "open_source"]
