"""The stream modes, one per file."""

from __future__ import annotations

from typing import Final

from tracegraph.stream.modes.base import Emit, Mode, ShownRun
from tracegraph.stream.modes.checkpoints import CheckpointsMode
from tracegraph.stream.modes.custom import CustomMode
from tracegraph.stream.modes.debug import DebugMode
from tracegraph.stream.modes.events import EventsMode
from tracegraph.stream.modes.graph_tasks import GraphTasksMode
from tracegraph.stream.modes.message_events import MessageEventsMode
from tracegraph.stream.modes.messages import MessagesMode
from tracegraph.stream.modes.tasks import TasksMode
from tracegraph.stream.modes.tools import ToolsMode
from tracegraph.stream.modes.updates import UpdatesMode
from tracegraph.stream.modes.values import ValuesMode
from tracegraph.stream.v3.protocol import GRAPH_TASKS, MESSAGE_EVENTS

__all__ = ["MODES", "Emit", "Mode", "ShownRun"]

MODES: Final[dict[str, type[Mode]]] = {
    "messages": MessagesMode,
    MESSAGE_EVENTS: MessageEventsMode,
    "updates": UpdatesMode,
    "values": ValuesMode,
    "tasks": TasksMode,
    GRAPH_TASKS: GraphTasksMode,
    "checkpoints": CheckpointsMode,
    "debug": DebugMode,
    "custom": CustomMode,
    "tools": ToolsMode,
    "events": EventsMode,
}
"""The order is that of parts which are made of one event."""
