"""From the builder's records to a graph that runs: nodes, channels and joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from tracegraph.channels import (
    BaseChannel,
    EphemeralValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
)
from tracegraph.constants import BRANCH_PREFIX, END, JOIN_PREFIX, ROOT, START, TAG_HIDDEN, TASKS
from tracegraph.drivers.body import Body
from tracegraph.engine.node import Node
from tracegraph.graph.annotations import is_natively_async
from tracegraph.graph.arguments import node_names
from tracegraph.graph.branch import Branch, Targets
from tracegraph.graph.discovery import find_subgraph
from tracegraph.graph.jsonschema import context_jsonschema, schema_jsonschema, schema_model
from tracegraph.graph.schema import Field, Schemas, nested_fields
from tracegraph.graph.sparing import spared_keys
from tracegraph.graph.specs import NodeSpec
from tracegraph.graph.trusted import with_classes_of
from tracegraph.graph.validation import DEFAULT_HANDLER, check_checkpointer, check_definition
from tracegraph.graph.writer import StateWriter
from tracegraph.pregel import Pregel
from tracegraph.stream.parts import Typed
from tracegraph.types import Send
from tracegraph.typing import ContextT, InputT, OutputT, StateT

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tracegraph.graph.state import StateGraph
    from tracegraph.records import Write

__all__ = ["CompiledStateGraph", "compile_graph"]

Joins = dict[str, tuple[tuple[str, ...], str]]


class CompiledStateGraph(Pregel, Generic[StateT, ContextT, InputT, OutputT]):
    """A compiled :class:`StateGraph`; ``builder`` is a copy of it as it was then."""

    builder: StateGraph[StateT, ContextT, InputT, OutputT]

    def __init__(
        self, *, builder: StateGraph[StateT, ContextT, InputT, OutputT], transformers: Sequence[Any] | None = None, **options: Any
    ) -> None:
        super().__init__(stream_transformers=transformers, **options)
        self.builder = builder

    def get_input_schema(self, config: Any = None) -> type[BaseModel]:  # noqa: ARG002  # as Runnables have it
        """Return a Pydantic model of the input; the input schema itself if it is one."""
        return schema_model(self.builder.input_schema, self.builder.schemas, f"{self.get_name()}Input")

    def get_output_schema(self, config: Any = None) -> type[BaseModel]:  # noqa: ARG002  # as Runnables have it
        """Return a Pydantic model of the output; the output schema itself if it is one."""
        return schema_model(self.builder.output_schema, self.builder.schemas, f"{self.get_name()}Output")

    def get_input_jsonschema(self, config: Any = None) -> dict[str, Any]:  # noqa: ARG002  # as Runnables have it
        """Return the JSON schema of the input."""
        return schema_jsonschema(self.builder.input_schema, self.builder.schemas, f"{self.get_name()}Input")

    def get_output_jsonschema(self, config: Any = None) -> dict[str, Any]:  # noqa: ARG002  # as Runnables have it
        """Return the JSON schema of the output."""
        return schema_jsonschema(self.builder.output_schema, self.builder.schemas, f"{self.get_name()}Output")

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """Return the JSON schema of the run context, None if the graph has no context schema."""
        return context_jsonschema(self.builder.context_schema)


class _Assembly:
    """One compile: the builder's nodes with the defaults filled in, and what is made of them."""

    def __init__(self, builder: StateGraph[Any, Any, Any, Any], *, is_strict: bool) -> None:
        self.builder = builder
        self.schemas = builder.schemas
        self.is_strict = is_strict
        self.specs = self._with_default_handler()
        # A handler has no trigger: only the engine runs it, when a node has failed.
        self.targets = Targets({name: f"{BRANCH_PREFIX}{name}" for name, spec in self.specs.items() if not spec.is_error_handler})
        self.joins = self._joins()
        self.edges = self._edge_writes()

    def _with_default_handler(self) -> dict[str, NodeSpec]:
        specs = dict(self.builder.nodes)
        handler = self.builder.defaults.error_handler
        if handler is not None:
            specs.setdefault(
                DEFAULT_HANDLER,
                NodeSpec(name=DEFAULT_HANDLER, body=handler, input_schema=self.builder.state_schema, is_error_handler=True),
            )
        return specs

    def _joins(self) -> Joins:
        # Sorted, for sets of strings come in another order in each process.
        joins: Joins = {}
        for starts, end in sorted(self.builder.waiting_edges):
            if end != END:
                joins[f"{JOIN_PREFIX}{'+'.join(starts)}:{end}"] = (starts, end)
        return joins

    def _edge_writes(self) -> dict[str, list[Write]]:
        """Return the constant writes of each source: plain edges first, then joins; edges to END write nothing."""
        writes: dict[str, list[Write]] = {}
        for start, end in sorted(self.builder.edges):
            if end != END:
                writes.setdefault(start, []).append((f"{BRANCH_PREFIX}{end}", None))
        for channel, (starts, _end) in self.joins.items():
            for start in dict.fromkeys(starts):
                writes.setdefault(start, []).append((channel, start))
        return writes

    def timeout_problems(self) -> list[str]:
        default = self.builder.defaults.timeout
        return [
            f"node {name!r} has a timeout but is not async, and nothing can stop a thread; make it an async function, "
            "or leave the timeout out"
            for name, spec in self.specs.items()
            if (spec.timeout or default) is not None and not is_natively_async(spec.body)
        ]

    def channels(self) -> dict[str, BaseChannel[Any, Any, Any]]:
        made: dict[str, BaseChannel[Any, Any, Any]] = dict(self.schemas.channels)
        made[START] = EphemeralValue(self.builder.input_schema)
        made[TASKS] = Topic(Send, accumulate=False)
        for name, channel in self.targets.channels.items():
            made[channel] = LastValueAfterFinish(Any) if self.specs[name].is_deferred else EphemeralValue(Any, guard=False)
        for channel, (starts, end) in self.joins.items():
            barrier = NamedBarrierValueAfterFinish if self.specs[end].is_deferred else NamedBarrierValue
            made[channel] = barrier(str, set(starts))
        for name, rule in made.items():
            rule.key = name
        return made

    def nodes(self) -> dict[str, Node]:
        return {START: self._start_node()} | {name: self._node(spec) for name, spec in self.specs.items()}

    def _start_node(self) -> Node:
        schema = self.builder.input_schema
        return Node(
            name=START,
            triggers=(START,),
            reads=START,
            writer=self._writer(START, self.schemas.fields[schema], self.builder.state_schema),
            tags=(TAG_HIDDEN,),
            is_hidden=True,
        )

    def _node(self, spec: NodeSpec) -> Node:
        defaults = self.builder.defaults
        is_regular = not spec.is_error_handler
        policies = defaults.retry_policies if spec.retry_policies is None else spec.retry_policies
        handler = spec.error_handler or (DEFAULT_HANDLER if defaults.error_handler is not None else None)
        reads, mapper = self.schemas.reads(spec.input_schema), self.schemas.mapper(spec.input_schema)
        joins = tuple(channel for channel, (_starts, end) in self.joins.items() if end == spec.name)
        return Node(
            name=spec.name,
            triggers=(self.targets.channels[spec.name], *joins) if is_regular else (),
            reads=reads,
            spared=spared_keys(spec.body, reads) if mapper is None else frozenset(),
            managed=self.schemas.managed_of(spec.input_schema),
            mapper=mapper,
            body=Body.of(spec.body, name=spec.name),
            writer=self._writer(spec.name, self.schemas.tree, spec.input_schema),
            retry_policies=policies or (),
            cache_policy=(spec.cache_policy or defaults.cache_policy) if is_regular else None,
            timeout=spec.timeout or defaults.timeout,
            trace_policy=spec.trace_policy,
            error_handler=handler if is_regular else None,
            metadata=spec.metadata,
            is_deferred=spec.is_deferred,
            subgraph=find_subgraph(spec.body),
        )

    def _writer(self, name: str, fields: Mapping[str, Field], schema: Any) -> StateWriter:
        """Return the writer of a node that may write *fields*, and whose conditional edges read *schema*."""
        branches = []
        for spec in self.builder.branches.get(name, {}).values():
            reads = schema if spec.input_schema is None else spec.input_schema
            branches.append(Branch(name, spec, Body.of(spec.path, name=spec.name), reads, self.schemas, self.targets))
        return StateWriter(
            name,
            [key for key, field in fields.items() if not isinstance(field, type)],
            nested=nested_fields(fields),
            targets=self.targets,
            edges=self.edges.get(name, ()),
            branches=branches,
            is_strict=self.is_strict,
        )


def compile_graph(
    builder: StateGraph[Any, Any, Any, Any],
    *,
    checkpointer: Any,
    interrupt_before: Any,
    interrupt_after: Any,
    name: str | None,
    is_strict: bool,
    concurrent_runs: str,
    **options: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the graph of *builder*, which stays as it is; see :meth:`StateGraph.compile`."""
    check_checkpointer(checkpointer)
    snapshot = builder.copy()
    assembly = _Assembly(snapshot, is_strict=is_strict)
    check_definition(
        snapshot, interrupt_before=interrupt_before, interrupt_after=interrupt_after, more=assembly.timeout_problems()
    )
    schemas = snapshot.schemas
    compiled: CompiledStateGraph[Any, Any, Any, Any] = CompiledStateGraph(
        builder=snapshot,
        nodes=assembly.nodes(),
        channels=assembly.channels(),
        joins=assembly.joins,
        managed=schemas.managed,
        input_channels=START,
        output_channels=_view(schemas.channel_names(snapshot.output_schema)),
        stream_channels=_view(schemas.all_channel_names()),
        nested=nested_fields(schemas.tree),
        interrupt_before_nodes=node_names(interrupt_before),
        interrupt_after_nodes=node_names(interrupt_after),
        checkpointer=checkpointer,
        context_schema=snapshot.context_schema,
        stream_mode="updates",
        # check_definition() has seen all that could be wrong, and knows which Runnables await.
        auto_validate=False,
        name=name or "LangGraph",
        is_named=name is not None,
        strict=is_strict,
        concurrent_runs=concurrent_runs,
        **options,
    )
    compiled.typed_output = _typed(schemas, snapshot.output_schema)
    compiled.typed_state = _typed(schemas, snapshot.state_schema)
    compiled.checkpointer = with_classes_of(checkpointer, _all_schemas(compiled))
    return compiled


def _all_schemas(compiled: CompiledStateGraph[Any, Any, Any, Any]) -> list[Any]:
    """Return the schemas of a graph and of its subgraphs, which save with its saver."""
    graphs = [compiled, *(graph for _name, graph in compiled.get_subgraphs(recurse=True))]
    return [schema for graph in graphs if isinstance(graph, CompiledStateGraph) for schema in graph.builder.schemas.fields]


def _typed(schemas: Schemas, schema: Any) -> Typed | None:
    make = schemas.mapper(schema)
    return None if make is None else Typed(make, list(schemas.fields[schema]))


def _view(names: tuple[str, ...]) -> str | tuple[str, ...]:
    return ROOT if names == (ROOT,) else names
