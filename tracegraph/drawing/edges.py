"""Which edges a graph has, worked out from its declaration.

A declared edge is drawn only if its source can be reached, and only a run knows which of several edges between
two nodes is taken; so the *names* are run, superstep by superstep, the way the engine would: plain edges lead on
every time, a conditional edge leads once to everything that was declared for it, a join waits for all its starts.
No node and no path function is called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tracegraph.constants import END, START
from tracegraph.drawing.model import Edge

__all__ = ["Wiring", "derive_edges", "wiring_of_builder", "wiring_of_nodes"]

_MAX_STEPS = 250
"""Steps after which a cycle counts as endless; the node reached then is where its way out is drawn."""

_Arrow = tuple[str, str, bool, str]
"""Source, target, is it conditional, label (the target if it has none: that is what sorts it)."""


@dataclass(slots=True)
class Wiring:
    """Who leads to whom, by name."""

    plain: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    declared: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    """Source -> (target, label) of everything a conditional edge or a Command may choose."""
    joins: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    deferred: set[str] = field(default_factory=set)


def wiring_of_builder(builder: Any) -> Wiring:
    """Read the wiring of a ``StateGraph``."""
    wiring = Wiring()
    for source, target in builder.edges:
        if target != END:
            wiring.plain[source].append(target)
    wiring.joins = [(tuple(starts), end) for starts, end in builder.waiting_edges if end != END]
    for name, spec in builder.nodes.items():
        wiring.declared[name] += _labelled(spec.ends)
        if spec.defer:
            wiring.deferred.add(name)
    for source, branches in builder.branches.items():
        for branch in branches.values():
            wiring.declared[source] += [(target, str(label)) for label, target in (branch.ends or {}).items()]
    return wiring


def _labelled(ends: Any) -> list[tuple[str, str]]:
    if isinstance(ends, Mapping):
        return [(target, str(label)) for target, label in ends.items()]
    return [(target, target) for target in ends or ()]


def wiring_of_nodes(nodes: Mapping[str, Any], input_channels: str | list[str]) -> Wiring:
    """Read the wiring of a low-level graph: a node leads to those that the channels it writes trigger.

    A writer that does not say what it writes (no ``channels``) leads nowhere.
    """
    listeners: dict[str, list[str]] = defaultdict(list)
    for name, node in nodes.items():
        for channel in node.triggers:
            listeners[channel].append(name)
    wiring = Wiring()
    for channel in [input_channels] if isinstance(input_channels, str) else input_channels:
        wiring.plain[START] += listeners[channel]
    for name, node in nodes.items():
        for channel in getattr(node.writer, "channels", ()):
            if channel == END:  # a functional graph's result: it may come from a later call as well
                wiring.declared[name].append((END, END))
            else:
                wiring.plain[name] += listeners[channel]
    return wiring


def derive_edges(wiring: Wiring) -> list[Edge]:
    """Return the edges of a drawing, sorted, the way to the end last.

    At most one edge leads from one node to another: a plain one rather than a conditional one taken at another
    time, and the first by label of several conditional ones.
    """
    arrows, last_tasks = _walk(wiring)
    drawn: dict[tuple[str, str], Edge] = {}
    for source, target, is_conditional, label in sorted(arrows):
        drawn.setdefault((source, target), Edge(source, target, None if label == target else label, is_conditional))
    edges = list(drawn.values())
    sources = {edge.source for edge in edges}
    leaves = sorted({edge.target for edge in edges} - sources - {END})
    edges += [Edge(leaf, END) for leaf in leaves]
    # Nobody declared how it ends. If one node is left in the end, the end is drawn from there.
    if len(last_tasks) == 1 and not any(edge.target == END for edge in edges):
        edges.append(Edge(last_tasks.pop(), END, None, True))
    return edges


def _walk(wiring: Wiring) -> tuple[set[_Arrow], set[str]]:
    """Run the names; return every arrow that led somewhere, and the tasks of the last superstep."""
    walk = _Walk(wiring)
    tasks, n_steps = {START}, 0
    while True:
        n_arrows = len(walk.arrows)
        following = walk.step(tasks)
        if not following:
            return walk.arrows, tasks
        tasks, n_steps = following, n_steps + 1
        # Past the limit only a long chain of nodes can still bring something new.
        if n_steps >= _MAX_STEPS and len(walk.arrows) == n_arrows:
            return walk.arrows, tasks


@dataclass(slots=True)
class _Walk:
    wiring: Wiring
    arrows: set[_Arrow] = field(default_factory=set)
    has_chosen: set[str] = field(default_factory=set)
    joins_of: dict[str, list[int]] = field(init=False)
    arrived: list[set[str]] = field(init=False)
    """Per join, who has come since it last fired."""
    ever_arrived: list[set[str]] = field(init=False)
    parked: set[str] = field(default_factory=set)
    """Deferred nodes that are triggered and wait until nothing else is."""

    def __post_init__(self) -> None:
        self.arrived = [set() for _ in self.wiring.joins]
        self.ever_arrived = [set() for _ in self.wiring.joins]
        self.joins_of = defaultdict(list)
        for i, (starts, _) in enumerate(self.wiring.joins):
            for start in starts:
                self.joins_of[start].append(i)

    def step(self, tasks: set[str]) -> set[str]:
        """Let the tasks of one superstep lead on; return the tasks of the next one."""
        triggered: set[str] = set()
        for task in tasks:
            triggered |= self._follow_edges(task)
        for task in tasks:
            for i in self.joins_of[task]:
                self.arrived[i].add(task)
                self.ever_arrived[i].add(task)
        triggered |= self._fire_joins(triggered)
        self.parked |= triggered & self.wiring.deferred
        following = triggered - self.wiring.deferred
        if not following:
            following, self.parked = self.parked, set()
        return following

    def _follow_edges(self, task: str) -> set[str]:
        plain = set(self.wiring.plain.get(task, ()))
        chosen: set[str] = set()
        if task not in self.has_chosen:
            self.has_chosen.add(task)
            for target, label in self.wiring.declared.get(task, ()):
                self.arrows.add((task, target, True, label))
                chosen.add(target)
        # Both kinds to one target at one time are one arrow, and the conditional one says more.
        self.arrows |= {(task, target, False, target) for target in plain - chosen}
        return (plain | chosen) - {END}

    def _fire_joins(self, triggered: set[str]) -> set[str]:
        """Return the ends of the joins that are complete; draw the joins of every node that runs next."""
        fired: set[str] = set()
        for i, (starts, end) in enumerate(self.wiring.joins):
            if self.arrived[i].issuperset(starts):
                self.arrived[i] = set()
                fired.add(end)
        for i, (_, end) in enumerate(self.wiring.joins):
            # A join that still waits is drawn too if something else made its end run.
            if end in fired or end in triggered:
                self.arrows |= {(start, end, False, end) for start in self.ever_arrived[i]}
        return fired
