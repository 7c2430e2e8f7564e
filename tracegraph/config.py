"""The config of a run: the dict users pass, the rules that merge it, and the typed form the inside works with.

A config that nobody passed is not there: ``recursion_limit`` is a key only if somebody set it, so an explicit limit
counts even when it equals the default. The *ambient* config is that of the task whose code is running
(:data:`tracegraph.current.CURRENT`); a graph called in a node inherits from it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypedDict, cast
from uuid import UUID

from tracegraph.constants import CONF, DEFAULT_RECURSION_LIMIT
from tracegraph.current import CURRENT, here
from tracegraph.errors import InvalidInputError
from tracegraph.types import StreamWriter

__all__ = [
    "Callbacks",
    "RunSpec",
    "RunnableConfig",
    "ensure_config",
    "get_config",
    "get_store",
    "get_stream_writer",
    "merge_callbacks",
    "merge_configs",
    "patch_config",
]

Callbacks: TypeAlias = Any
"""A list of handlers, a callback manager (ours or LangChain's, by duck type), or None."""


class RunnableConfig(TypedDict, total=False):
    """How to run: every public method of a graph takes one.

    ``run_name`` and ``run_id`` are for this run only; the rest is inherited by the runs inside it.
    """

    tags: list[str]
    metadata: dict[str, Any]
    callbacks: Callbacks
    run_name: str | None
    run_id: UUID | None
    max_concurrency: int | None
    recursion_limit: int
    configurable: dict[str, Any]


_KEYS: Final = frozenset(RunnableConfig.__annotations__)
_INHERITED: Final = ("tags", "metadata", "callbacks", "max_concurrency", "recursion_limit", CONF)

# An explicit one of these makes a call independent of the run around it.
_ADDRESS: Final = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")

# Copied from configurable to metadata, where traces and checkpoints are searched by them.
_SHOWN: Final = ("thread_id", "checkpoint_id", "checkpoint_ns", "task_id", "run_id", "assistant_id", "graph_id")
_SHOWN_ADDRESS: Final = ("thread_id", "checkpoint_id", "checkpoint_ns")


def ensure_config(*configs: RunnableConfig | None) -> RunnableConfig:
    """Return a fresh, complete config: the ambient one, overlaid by *configs* from left to right.

    Unknown top-level keys move into ``configurable``. A config that brings its own thread or checkpoint address
    drops the ambient ``configurable`` entirely, and what ambient metadata says of the thread with it.

    >>> ensure_config({"tags": ["a"], "user": "u1", "configurable": {"thread_id": "7"}})["configurable"]
    {'user': 'u1', 'thread_id': '7'}
    """
    out: RunnableConfig = {"tags": [], "metadata": {}, "callbacks": None, "configurable": {}}
    around = CURRENT.get()
    if around is not None:
        _inherit(out, around.config())
    given = [c for c in configs if c]
    if given:
        if around is not None and any(_is_addressed(c) for c in given):
            out["configurable"] = {}
            for key in _SHOWN_ADDRESS:
                out["metadata"].pop(key, None)
        inherited_tags = frozenset(out["tags"])
        for config in given:
            _overlay(out, config, inherited_tags)
    configurable = out["configurable"]
    if configurable:
        metadata = out["metadata"]
        for key in _SHOWN:
            if (value := configurable.get(key)) and key not in metadata:
                metadata[key] = value
    return out


def _inherit(out: RunnableConfig, ambient: Mapping[str, Any]) -> None:
    for key in _INHERITED:
        value: Any = ambient.get(key)
        if not _is_empty(value):
            out[key] = value.copy() if hasattr(value, "copy") else value


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (list, tuple, dict)) and not value)


def _is_addressed(config: Mapping[str, Any]) -> bool:
    configurable: Any = config.get(CONF)
    return bool(configurable) and any(configurable.get(key) for key in _ADDRESS)


def _overlay(out: RunnableConfig, config: Mapping[str, Any], inherited_tags: frozenset[str]) -> None:
    """Lay *config* over *out*, which owns its containers."""
    for key, value in config.items():
        if _is_empty(value):
            continue
        match key:
            case "configurable":
                out["configurable"].update(value)
            case "metadata":
                out["metadata"] = _merge_metadata(out["metadata"], value)
            case "tags":
                out["tags"] += [tag for tag in value if tag not in inherited_tags]
            case "callbacks":
                out["callbacks"] = merge_callbacks(out["callbacks"], value)
            case _ if key in _KEYS:
                out[key] = value  # type: ignore[literal-required]
            case _:
                out["configurable"][key] = value


def _merge_metadata(base: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**base, **other}
    # One level deeper: each integration adds its own version number here.
    if isinstance(ours := base.get("lc_versions"), dict) and isinstance(theirs := other.get("lc_versions"), dict):
        merged["lc_versions"] = {**ours, **theirs}
    return merged


def merge_configs(*configs: RunnableConfig | None) -> RunnableConfig:
    """Return what *configs* say together, later ones winning; the ambient config plays no part.

    Tags are concatenated and kept even if they repeat.

    >>> merge_configs({"tags": ["a"], "recursion_limit": 5}, None, {"tags": ["a"], "configurable": {"k": 1}})
    {'configurable': {'k': 1}, 'tags': ['a', 'a'], 'recursion_limit': 5}
    """
    out: dict[str, Any] = {CONF: {}}
    for config in configs:
        for key, value in (config or {}).items():
            if _is_empty(value):
                continue
            match key:
                case "metadata":
                    out[key] = _merge_metadata(out.get(key, {}), cast("Mapping[str, Any]", value))
                case "tags":
                    out[key] = [*out.get(key, ()), *cast("Sequence[str]", value)]
                case "configurable":
                    out[key] = {**out[key], **cast("Mapping[str, Any]", value)}
                case "callbacks":
                    out[key] = merge_callbacks(out.get(key), value)
                case _:
                    out[key] = value
    return cast("RunnableConfig", out)


def merge_callbacks(base: Callbacks, other: Callbacks) -> Callbacks:
    """Return the handlers of both: lists are joined, a manager takes the other's handlers as inheritable ones.

    Of two managers the first keeps its parent run. Neither argument is changed.
    """
    if _is_empty(other):
        return base
    if isinstance(other, (list, tuple)):
        if _is_empty(base):
            return list(other)
        if isinstance(base, (list, tuple)):
            return [*base, *other]
        manager = base.copy()
        for handler in other:
            manager.add_handler(handler, inherit=True)
        return manager
    if _is_empty(base):
        return other.copy()
    if isinstance(base, (list, tuple)):
        manager = other.copy()
        for handler in base:
            manager.add_handler(handler, inherit=True)
        return manager
    return base.merge(other)


def patch_config(
    config: RunnableConfig | None,
    *,
    callbacks: Callbacks = None,
    recursion_limit: int | None = None,
    max_concurrency: int | None = None,
    run_name: str | None = None,
    configurable: Mapping[str, Any] | None = None,
) -> RunnableConfig:
    """Return a copy of *config* with some keys replaced; ``configurable`` is merged.

    New callbacks belong to another run, so they take ``run_name`` and ``run_id`` away.
    """
    out: dict[str, Any] = dict(config or {})
    if callbacks is not None:
        out["callbacks"] = callbacks
        out.pop("run_name", None)
        out.pop("run_id", None)
    if recursion_limit is not None:
        out["recursion_limit"] = recursion_limit
    if max_concurrency is not None:
        out["max_concurrency"] = max_concurrency
    if run_name is not None:
        out["run_name"] = run_name
    if configurable is not None:
        out[CONF] = {**out.get(CONF, {}), **configurable}
    return cast("RunnableConfig", out)


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def _limit_from_environment() -> int:
    for name in ("TRACEGRAPH_DEFAULT_RECURSION_LIMIT", "LANGGRAPH_DEFAULT_RECURSION_LIMIT"):
        if text := os.environ.get(name):
            try:
                return int(text)
            except ValueError:
                raise InvalidInputError(f"environment variable {name} must be a whole number, not {text!r}") from None
    return DEFAULT_RECURSION_LIMIT


_UNSET_LIMIT: Final = _limit_from_environment()


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A config with typed fields, which is what drivers read.

    ``recursion_limit`` is the default where ``is_limit_set`` is false. ``checkpoint_ns`` is ``""`` at the root.
    """

    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    callbacks: Callbacks
    run_name: str | None
    run_id: UUID | None
    max_concurrency: int | None
    recursion_limit: int
    is_limit_set: bool
    configurable: Mapping[str, Any]
    thread_id: str | None
    checkpoint_ns: str
    checkpoint_id: str | None
    checkpoint_map: Mapping[str, str]

    @classmethod
    def of(cls, config: RunnableConfig) -> RunSpec:
        """Read and check *config*, usually one that :func:`ensure_config` made.

        Raises:
            InvalidInputError: a limit below 1, or a ``run_id`` that is no UUID.
        """
        configurable = config.get(CONF) or _NOTHING
        limit = config.get("recursion_limit")
        concurrency = config.get("max_concurrency")
        if limit is not None and limit < 1:
            raise InvalidInputError(f"recursion_limit must be at least 1, not {limit!r}")
        if concurrency is not None and concurrency < 1:
            raise InvalidInputError(f"max_concurrency must be at least 1, not {concurrency!r}; leave it out for no limit")
        thread_id = configurable.get("thread_id")
        checkpoint_id = configurable.get("checkpoint_id")
        return cls(
            tags=tuple(config.get("tags") or ()),
            metadata=config.get("metadata") or _NOTHING,
            callbacks=config.get("callbacks"),
            run_name=config.get("run_name"),
            run_id=_as_uuid(config.get("run_id")),
            max_concurrency=concurrency,
            recursion_limit=_UNSET_LIMIT if limit is None else limit,
            is_limit_set=limit is not None,
            configurable=configurable,
            thread_id=None if thread_id is None else str(thread_id),
            checkpoint_ns=configurable.get("checkpoint_ns") or "",
            checkpoint_id=None if checkpoint_id is None else str(checkpoint_id),
            checkpoint_map=configurable.get("checkpoint_map") or _NOTHING,
        )


def _as_uuid(value: Any) -> UUID | None:
    if value is None or isinstance(value, UUID):
        return value
    try:
        return UUID(str(value))
    except ValueError:
        raise InvalidInputError(f"run_id must be a UUID, not {value!r}") from None


def get_config() -> RunnableConfig:
    """Return the config of the running node: the very object a ``config`` parameter gets.

    Raises:
        RuntimeError: called outside a run.
    """
    return cast("RunnableConfig", here("get_config()").config())


def get_store() -> Any:
    """Return the store of the running node, None if the graph has none.

    Raises:
        RuntimeError: called outside a run.
    """
    return here("get_store()").runtime.store


def get_stream_writer() -> StreamWriter:
    """Return the function that emits a chunk of the ``custom`` stream mode; it may be called in any thread.

    Raises:
        RuntimeError: called outside a run.
    """
    return cast("StreamWriter", here("get_stream_writer()").runtime.stream_writer)
