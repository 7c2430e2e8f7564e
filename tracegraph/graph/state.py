"""The builder of graphs over a shared state."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, Generic, Literal, Self

from tracegraph.constants import END, NS_END, NS_SEP, START
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph.annotations import command_destinations, parameter_schema
from tracegraph.graph.arguments import (
    Retry,
    Timeout,
    check_invocable,
    check_no_more,
    declared_ends,
    named_action,
    retry_policies,
    take_renamed,
)
from tracegraph.graph.branch import branch_spec
from tracegraph.graph.compile import CompiledStateGraph, compile_graph
from tracegraph.graph.schema import Schemas
from tracegraph.graph.specs import BranchSpec, NodeDefaults, NodeSpec
from tracegraph.graph.validation import check_definition
from tracegraph.types import All, CachePolicy, Checkpointer, TimeoutPolicy, TracePolicy
from tracegraph.typing import ContextT, InputT, OutputT, StateT

__all__ = ["CompiledStateGraph", "StateGraph"]

logger = logging.getLogger("tracegraph")


class StateGraph(Generic[StateT, ContextT, InputT, OutputT]):
    """Collects nodes and edges over a shared state; :meth:`compile` makes a graph that runs.

    Each field of *state_schema* is a channel: a plain field keeps the last write, ``Annotated[type, reducer]``
    combines writes. Of a field ``Annotated[SomeTypedDict, Nested]`` each key is one. *input_schema* and *output_schema*
    narrow what a caller gives and gets. *context_schema* is the type of what a caller passes beside the input, as
    ``context=``.

    >>> from typing import TypedDict
    >>> class State(TypedDict):
    ...     n: int
    >>> builder = StateGraph(State).add_sequence([("double", lambda s: {"n": s["n"] * 2})])
    >>> app = builder.add_edge(START, "double").compile()

    Raises:
        GraphDefinitionError: a schema cannot be read, two conflict, or a reducer does not take two values.
    """

    def __init__(
        self,
        state_schema: type[StateT],
        context_schema: type[ContextT] | None = None,
        *,
        input_schema: type[InputT] | None = None,
        output_schema: type[OutputT] | None = None,
        **deprecated: Any,
    ) -> None:
        context_schema = take_renamed(deprecated, "config_schema", "context_schema", context_schema)
        input_schema = take_renamed(deprecated, "input", "input_schema", input_schema)
        output_schema = take_renamed(deprecated, "output", "output_schema", output_schema)
        check_no_more("StateGraph", deprecated)
        self.state_schema: Any = state_schema
        self.input_schema: Any = state_schema if input_schema is None else input_schema
        self.output_schema: Any = state_schema if output_schema is None else output_schema
        self.context_schema = context_schema
        self.schemas = Schemas()
        self.schemas.register(state_schema)
        self.schemas.register(self.input_schema, role="input")
        self.schemas.register(self.output_schema, role="output")
        self.nodes: dict[str, NodeSpec] = {}
        self.edges: set[tuple[str, str]] = set()
        self.waiting_edges: set[tuple[tuple[str, ...], str]] = set()
        self.branches: dict[str, dict[str, BranchSpec]] = {}
        self.defaults = NodeDefaults()
        self.compiled = False

    @property
    def channels(self) -> dict[str, Any]:
        """The state's channels by field name, in the order in which the schemas brought them."""
        return self.schemas.channels

    @property
    def managed(self) -> dict[str, Any]:
        """The state's managed values by field name."""
        return self.schemas.managed

    def add_node(
        self,
        node: Any,
        action: Any = None,
        *,
        defer: bool = False,
        metadata: Mapping[str, Any] | None = None,
        input_schema: Any = None,
        retry_policy: Retry = None,
        cache_policy: CachePolicy | None = None,
        error_handler: Any = None,
        destinations: Mapping[str, str] | Sequence[str] | None = None,
        timeout: Timeout = None,
        trace_policy: TracePolicy | None = None,
        **deprecated: Any,
    ) -> Self:
        """Add a node: ``add_node(function)``, under the function's own name, or ``add_node(name, function)``.

        ``defer`` runs it only when nothing else is left to run. ``input_schema`` is what it reads; else the annotation of
        its first parameter, else the state. ``destinations`` says where its Commands may lead, for drawings and checks
        (a dict maps a name to a label); else a ``Command[Literal[...]]`` return annotation does. ``timeout`` is in seconds
        for one attempt, or a policy, and needs an async node.

        Raises:
            GraphDefinitionError: the name is taken, reserved or has a ``|`` or ``:``.
            RuntimeError: a name was given without a function.
            TypeError: *node* is nothing that can be called.
        """
        retry_policy = take_renamed(deprecated, "retry", "retry_policy", retry_policy)
        input_schema = take_renamed(deprecated, "input", "input_schema", input_schema)
        check_no_more("add_node", deprecated)
        name, action = named_action(node, action)
        self._check_new_name(name)
        schema = input_schema if input_schema is not None else parameter_schema(action)
        spec = NodeSpec(
            name=name,
            body=action,
            input_schema=self.state_schema if schema is None else schema,
            metadata=None if metadata is None else dict(metadata),
            ends=declared_ends(action, destinations),
            retry_policies=retry_policies(retry_policy),
            cache_policy=cache_policy,
            error_handler=None if error_handler is None else f"__error_handler__{name}",
            timeout=TimeoutPolicy.coerce(timeout),
            trace_policy=trace_policy,
            is_deferred=defer,
        )
        handler = None if error_handler is None else self._handler_spec(spec, error_handler)
        self.schemas.register(spec.input_schema)
        if handler is not None:
            self.nodes[handler.name] = handler
        self.nodes[name] = spec
        return self._changed("a node")

    def _handler_spec(self, spec: NodeSpec, handler: Any) -> NodeSpec:
        name = f"__error_handler__{spec.name}"
        self._check_new_name(name)
        check_invocable(handler, f"the error handler of node {spec.name!r}")
        return NodeSpec(
            name=name, body=handler, input_schema=spec.input_schema, ends=command_destinations(handler), is_error_handler=True
        )

    def _check_new_name(self, name: str) -> None:
        if name in self.nodes:
            raise GraphDefinitionError(f"node {name!r} exists already; give the second one another name")
        if name in (START, END):
            raise GraphDefinitionError(f"{name!r} is the name of a virtual node; give the node another name")
        for mark in (NS_SEP, NS_END):
            if mark in name:
                raise GraphDefinitionError(
                    f"the node name {name!r} has a {mark!r}, which separates the parts of checkpoint namespaces; leave it out"
                )

    def add_edge(self, start_key: str | Sequence[str], end_key: str) -> Self:
        """Go on to *end_key* whenever *start_key* has run; a list of starts waits until all of them have.

        The nodes of a single edge may be added later; those of a list must exist.

        Raises:
            GraphDefinitionError: the edge leaves END or enters START, or a node of a list does not exist.
        """
        if end_key == START:
            raise GraphDefinitionError(f"an edge from {start_key!r} cannot end at START; name the node to go to")
        if isinstance(start_key, str):
            if start_key == END:
                raise GraphDefinitionError(f"an edge to {end_key!r} cannot start at END, after which nothing runs")
            self.edges.add((start_key, end_key))
            return self._changed("an edge")
        starts = tuple(start_key)
        if not starts:
            raise GraphDefinitionError(f"the list of starts of the edge to {end_key!r} is empty; name the nodes to wait for")
        for start in starts:
            if start == END:
                raise GraphDefinitionError(f"the edge to {end_key!r} cannot wait for END, after which nothing runs")
            if start not in self.nodes:
                raise GraphDefinitionError(
                    f"the edge to {end_key!r} waits for {start!r}, which is no node yet; add it first, known: {self._known()}"
                )
        if end_key != END and end_key not in self.nodes:
            raise GraphDefinitionError(
                f"the edge from {list(starts)!r} ends at {end_key!r}, which is no node yet; add it first, known: {self._known()}"
            )
        self.waiting_edges.add((starts, end_key))
        return self._changed("an edge")

    def add_conditional_edges(
        self, source: str, path: Any, path_map: Mapping[Hashable, str] | Sequence[str] | None = None
    ) -> Self:
        """After *source*, go where *path* says: a node's name, a Send, END, or a list of these.

        *path* gets the state with the writes of *source* applied. With *path_map* it returns the map's keys;
        without, a ``Literal`` return annotation tells where it may go.

        Raises:
            GraphDefinitionError: *source* has a conditional edge of that name.
            TypeError: *path* is nothing that can be called.
        """
        check_invocable(path, f"the path of a conditional edge of node {source!r}")
        spec = branch_spec(path, path_map)
        if spec.name in self.branches.get(source, {}):
            raise GraphDefinitionError(
                f"node {source!r} has a conditional edge {spec.name!r} already; an edge is named after its function, "
                "so let the second one have a function of another name"
            )
        if spec.input_schema is not None:
            self.schemas.register(spec.input_schema)
        self.branches.setdefault(source, {})[spec.name] = spec
        return self._changed("a conditional edge")

    def add_sequence(self, nodes: Sequence[Any | tuple[str, Any]]) -> Self:
        """Add nodes, each a function or a pair of name and function, and chain them; START is not connected.

        Raises:
            GraphDefinitionError: there are none, or a name is taken; no node is added then.
        """
        named = [named_action(*(node if isinstance(node, tuple) else (node, None))) for node in nodes]
        if not named:
            raise GraphDefinitionError("the sequence has no nodes; name at least one")
        names = [name for name, _action in named]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise GraphDefinitionError(f"the sequence names node {name!r} twice; give the second one another name")
            self._check_new_name(name)
        for name, action in named:
            self.add_node(name, action)
        for start, end in pairwise(names):
            self.add_edge(start, end)
        return self

    def set_entry_point(self, key: str) -> Self:
        """Start with node *key*; the same as an edge from START."""
        return self.add_edge(START, key)

    def set_conditional_entry_point(self, path: Any, path_map: Mapping[Hashable, str] | Sequence[str] | None = None) -> Self:
        """Start where *path*, given the input, says; the same as a conditional edge of START."""
        return self.add_conditional_edges(START, path, path_map)

    def set_finish_point(self, key: str) -> Self:
        """Stop after node *key*; the same as an edge to END."""
        return self.add_edge(key, END)

    def set_node_defaults(
        self,
        *,
        retry_policy: Retry = None,
        cache_policy: CachePolicy | None = None,
        error_handler: Any = None,
        timeout: Timeout = None,
    ) -> Self:
        """Set policies for the nodes that have none of their own; several calls add up.

        Retries and timeouts hold for error handlers too, caching and the error handler for regular nodes only.
        Nodes of subgraphs do not inherit them.
        """
        if error_handler is not None:
            check_invocable(error_handler, "the default error handler")
        self.defaults = self.defaults.updated(
            retry_policies=retry_policies(retry_policy),
            cache_policy=cache_policy,
            error_handler=error_handler,
            timeout=TimeoutPolicy.coerce(timeout),
        )
        return self._changed("a default")

    def validate(self, interrupt: Sequence[str] | All | None = None) -> Self:
        """Check that edges, conditional edges and *interrupt* refer to nodes that exist, and that START leads somewhere.

        Raises:
            GraphDefinitionError: with all that is wrong.
        """
        check_definition(self, interrupt_before=interrupt)
        return self

    def compile(
        self,
        checkpointer: Checkpointer = None,
        *,
        cache: Any = None,
        store: Any = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        debug: bool = False,
        name: str | None = None,
        transformers: Sequence[Any] | None = None,
        strict: bool = False,
        concurrent_runs: Literal["reject", "queue"] = "reject",
        max_state_bytes: int | None = None,
        step_timeout: float | timedelta | None = None,
    ) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
        """Return the graph, ready to run; the builder stays as it is and may be compiled again.

        ``checkpointer`` is a saver; in a subgraph also None (the parent's), True (one of its own) or False (none).
        ``interrupt_before`` and ``interrupt_after`` name nodes to pause at, ``"*"`` means all. With ``strict`` a key of
        the input or of a node's update that is not in the state is an error; else it is ignored.

        ``concurrent_runs`` says what becomes of runs and updates that come while another is under way on their thread:
        "reject" fails the one that saves second (:class:`ConcurrentRunError`), "queue" lets each wait until those before
        it have ended, in other processes too.

        ``max_state_bytes`` limits the values of a thread's channels, as its saver serialises them (of this graph: a subgraph
        has a state, and a limit, of its own). What would make them larger fails with :class:`StateSizeError` and changes
        nothing: an input, an update, a superstep, whose tasks need not run again when it is tried once more.
        ``step_timeout`` (seconds or a timedelta) limits the time of every superstep, of sync nodes too: a run that exceeds
        it raises :class:`StepTimeoutError`, keeps what finished nodes wrote, and can be resumed with None.

        Raises:
            GraphDefinitionError: with all that is wrong, each naming the node and the way out.
            TypeError: *checkpointer* is no saver.
        """
        compiled: CompiledStateGraph[StateT, ContextT, InputT, OutputT] = compile_graph(
            self,
            checkpointer=checkpointer,
            cache=cache,
            store=store,
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            debug=debug,
            name=name,
            transformers=transformers,
            is_strict=strict,
            concurrent_runs=concurrent_runs,
            max_state_bytes=max_state_bytes,
            step_timeout=step_timeout,
        )
        self.compiled = True
        return compiled

    def copy(self) -> Self:
        """Return an independent builder with the same content."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.schemas = self.schemas.copy()
        made.nodes = dict(self.nodes)
        made.edges = set(self.edges)
        made.waiting_edges = set(self.waiting_edges)
        made.branches = {source: dict(found) for source, found in self.branches.items()}
        made.compiled = False
        return made

    def _changed(self, what: str) -> Self:
        if self.compiled:
            logger.warning("%s was added to a graph that has been compiled; compile it again to run it so", what.capitalize())
        return self

    def _known(self) -> str:
        return ", ".join(map(repr, self.nodes)) or "none"
