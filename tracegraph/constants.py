"""Reserved names, written once.

The strings are part of the API (they appear in checkpoints, task paths and
drawings), so they equal those a LangGraph user already knows.
"""

from typing import Final, final

__all__ = ["CONF", "DEFAULT_RECURSION_LIMIT", "END", "START", "TAG_HIDDEN", "TAG_NOSTREAM", "TASKS"]

START: Final = "__start__"
"""The virtual node before the first step, and the channel that holds the input."""

END: Final = "__end__"
"""The virtual node that ends a run."""

TAG_HIDDEN: Final = "langsmith:hidden"
"""Tag of a run that handlers receive but streams and drawings leave out."""

TAG_NOSTREAM: Final = "nostream"
"""Tag of a model whose tokens are not streamed."""

TASKS: Final = "__pregel_tasks"
"""Channel of pending ``Send`` packets."""

CONF: Final = "configurable"
"""Config key below which a user's own keys, thread and checkpoint ids live."""

DEFAULT_RECURSION_LIMIT: Final = 10007
"""Supersteps a run may take when nobody set ``recursion_limit``."""

# Reserved write channels: what a task record says beside its state updates.
INPUT: Final = "__input__"
INTERRUPT: Final = "__interrupt__"
RESUME: Final = "__resume__"
ERROR: Final = "__error__"
ERROR_SOURCE_NODE: Final = "__error_source_node__"
NO_WRITES: Final = "__no_writes__"
RETURN: Final = "__return__"
PREVIOUS: Final = "__previous__"
TRACE: Final = "__trace__"
"""W3C traceparents of the task's span and of the run's root, beside an INTERRUPT or ERROR."""

ASKED: Final = "__asked__"
"""Beside an INTERRUPT, when each of its questions was first asked and where: ``{id: [wall-clock ns, node, workflow name]}``."""

DETOURS: Final = "__detours__"
"""Key of a checkpoint's metadata: what lies between it and its ancestors in time, but on other branches of the thread."""

SKIPPED_WRITES: Final = frozenset({NO_WRITES, "__pregel_push", RESUME, INTERRUPT, RETURN, ERROR, ERROR_SOURCE_NODE, TRACE, ASKED})
"""Write channels that never reach a state channel."""

UNFINISHED_WRITES: Final = frozenset({ERROR, ERROR_SOURCE_NODE, INTERRUPT, RESUME, TRACE, ASKED})
"""A task whose record holds only these has not finished."""

STRICT_RESUME: Final = "__pregel_strict_resume"
"""Key of ``configurable``: an empty map of answers is an error too."""

PUSH: Final = "__pregel_push"
PULL: Final = "__pregel_pull"
NODE_ERROR_HANDLER: Final = "node_error_handler"

NULL_TASK_ID: Final = "00000000-0000-0000-0000-000000000000"
"""Task id of writes that no task made (a ``Command`` given as input)."""

NS_SEP: Final = "|"
"""Between two segments of a checkpoint namespace."""

NS_END: Final = ":"
"""Between node name and task id inside a segment."""

ROOT: Final = "__root__"
"""Channel of a state that is one value instead of fields."""

BRANCH_PREFIX: Final = "branch:to:"
JOIN_PREFIX: Final = "join:"

RESERVED_NAMES: Final = frozenset(
    {
        TAG_HIDDEN, INPUT, INTERRUPT, RESUME, ERROR, ERROR_SOURCE_NODE, NO_WRITES, TRACE, ASKED, PUSH, PULL, NS_SEP, NS_END, CONF,
        "__snapshot_bumps__", "__pregel_send", "__pregel_read", "__pregel_checkpointer", "__pregel_stream",
        "__pregel_resuming", "__pregel_replay_state", "__pregel_task_id", "__pregel_timed_attempt_observer",
        "__pregel_resume_map", "__pregel_strict_resume", "__pregel_stream_messages_v2",
        "checkpoint_map", "checkpoint_id", "checkpoint_ns",
    }
)  # fmt: skip
"""Names no node, channel or managed value may have."""


@final
class Missing:
    """Type of the sentinels :data:`MISSING` and :data:`UNCHANGED`; ``None`` is a legal value everywhere."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __copy__(self) -> "Missing":
        return self

    def __deepcopy__(self, memo: object) -> "Missing":
        return self


MISSING: Final = Missing("MISSING")
"""No value: an empty channel."""

UNCHANGED: Final = Missing("UNCHANGED")
"""A channel's answer to a batch of writes that changes nothing: its version stays."""

FAILURES: Final = "__tracegraph_failures__"
"""The attribute of an exception that holds whose run it ended, and what failed beside it."""
