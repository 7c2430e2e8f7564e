"""A compiled graph's tables: whatever can be looked up once is looked up here, at compile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracegraph.channels.base import BaseChannel, RuleChannel
from tracegraph.constants import START
from tracegraph.engine.nesting import NestedField, leaves
from tracegraph.engine.node import Node

__all__ = ["Topology"]


class Topology:
    """Nodes, channels and the tables derived from them; holds no run state and is shared by all runs."""

    __slots__ = (
        "always_clears",
        "channels",
        "clears",
        "finishes",
        "growing",
        "held",
        "initial_states",
        "initial_values",
        "input_channels",
        "joins",
        "nested",
        "node_consumes",
        "nodes",
        "output_channels",
        "output_keys",
        "paths",
        "replaces",
        "saved_as_it_is",
        "short_lived",
        "stream_channels",
        "trace_policies",
        "trigger_to_nodes",
        "unsaved",
    )

    def __init__(
        self,
        nodes: Mapping[str, Node],
        channels: Mapping[str, BaseChannel[Any, Any, Any]],
        *,
        input_channels: str | tuple[str, ...],
        output_channels: str | tuple[str, ...],
        stream_channels: str | tuple[str, ...],
        joins: Mapping[str, tuple[tuple[str, ...], str]],
        nested: Mapping[str, NestedField] | None = None,
    ) -> None:
        self.nodes = dict(nodes)
        self.channels = dict(channels)
        self.input_channels = input_channels
        self.output_channels = output_channels
        self.output_keys = frozenset((output_channels,) if isinstance(output_channels, str) else output_channels)
        self.stream_channels = stream_channels
        self.joins = dict(joins)
        self.nested = dict(nested or {})
        """Fields that are no channel themselves: their sub-fields are."""
        self.paths = {".".join(path): path for path, _ in leaves(self.nested)}
        """Channels of sub-fields, and where they are shown."""
        triggers: dict[str, list[Node]] = {}
        for node in self.nodes.values():
            for trigger in node.triggers:
                triggers.setdefault(trigger, []).append(node)
        self.trigger_to_nodes = {name: tuple(found) for name, found in triggers.items()}
        policies = {name: node.trace_policy for name, node in self.nodes.items() if node.trace_policy is not None}
        self.trace_policies = policies or None
        self.held = frozenset(name for name, rule in self.channels.items() if not rule.is_plain)
        self.clears = frozenset(name for name, rule in self.channels.items() if rule.clears)
        self.replaces = frozenset(name for name, rule in self.channels.items() if rule.replaces)
        """Channels whose state a lone write replaces, so that no rule has to be asked."""
        self.saved_as_it_is = frozenset(
            name
            for name, rule in self.channels.items()
            if rule.is_plain and rule.is_saved and type(rule).dump is RuleChannel.dump
        )
        """Channels whose value is what is saved of them."""
        self.growing = frozenset(name for name, rule in self.channels.items() if rule.grows)
        """Channels that may have grown, rather than changed, when they are saved."""
        self.short_lived = self.clears - self.held
        # A held channel's raw state may change on an idle step while its value is not readable,
        # so those are asked every step; plain ones only while they hold a value.
        self.always_clears = tuple(name for name in self.channels if name in self.clears and name in self.held)
        self.finishes = tuple(name for name, rule in self.channels.items() if rule.finishes)
        self.unsaved = frozenset(name for name, rule in self.channels.items() if not rule.is_saved)
        consumes = {name for name, rule in self.channels.items() if rule.consumes}
        self.node_consumes = {
            name: found for name, node in self.nodes.items() if (found := tuple(t for t in node.triggers if t in consumes))
        }
        self.initial_values, self.initial_states = self._initial()

    def _initial(self) -> tuple[dict[str, Any], dict[str, Any]]:
        from tracegraph.constants import MISSING

        values: dict[str, Any] = {}
        states: dict[str, Any] = {}
        for name, rule in self.channels.items():
            state = rule.initial()
            if name in self.held:
                states[name] = state
            if (value := rule.peek(state)) is not MISSING:
                values[name] = value
        return values, states

    def fresh_values(self) -> dict[str, Any]:
        """Return the initial values; mutable ones are made anew, for two runs must not share a list."""
        return {name: self.channels[name].peek(self.channels[name].initial()) for name in self.initial_values}

    def node_names(self) -> list[str]:
        """Return the names a Send, goto or branch may address."""
        return [name for name in self.nodes if name != START]

    def has_node(self, name: Any) -> bool:
        """Say whether a Send may address *name*."""
        return name in self.nodes and name != START
