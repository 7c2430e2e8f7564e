"""Threads, pauses and time travel compared with LangGraph, where the two are to behave the same (spec 05 and 06)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from both import Library, State
from colours import Colour

Scenario = Callable[[Library], Any]
SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str) -> Callable[[Scenario], Scenario]:
    """Add a scenario under a name."""

    def add(tell: Scenario) -> Scenario:
        SCENARIOS[name] = tell
        return tell

    return add


IN_TURN: Any = {"configurable": {"thread_id": "t"}, "max_concurrency": 1}
"""One task at a time, so that the last of a superstep can fail when the others are done."""


def at(ns: str) -> Any:
    """Return the config of a namespace of the thread."""
    return {"configurable": {"thread_id": "t", "checkpoint_ns": ns}}


# --- checkpoints (P1 to P9) --------------------------------------------------------------------------------


@scenario("P1 the steps of a thread and what their ids show")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"), b=lib.says("b"))
    return [lib.invoke(app, {"log": []}), lib.invoke(app, {"log": ["more"]}), lib.read(app)]


@scenario("P2 metadata take scalars of the config and leave addresses out")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"))
    config = {
        "configurable": {"thread_id": "t", "user": "u", "__private": 1, "n": 3, "obj": [1]},
        "metadata": {"m": 1.5, "k": True},
    }
    return [lib.invoke(app, {"log": []}, config), lib.read(app)]


@scenario("P3 a failed superstep keeps its siblings' results")
def _(lib: Library) -> Any:
    app = lib.beside("new", a=lib.says("a"), c=lib.says("c"), d=lib.fails())
    return [lib.invoke(app, {"log": []}, IN_TURN), lib.read(app), lib.took(), lib.invoke(app, None), lib.took(), lib.read(app)]


@scenario("P3 new input drops what was left undone")
def _(lib: Library) -> Any:
    app = lib.beside("new", a=lib.says("a"), b=lib.fails())
    return [lib.invoke(app, {"log": []}, IN_TURN), lib.took(), lib.invoke(app, {"log": ["new"]}), lib.took(), lib.look(app)]


@scenario("P5 exit: one checkpoint and the results of the step that failed")
def _(lib: Library) -> Any:
    app = lib.chain("new", x=lib.says("x"), y=lib.fails())
    first = lib.invoke(app, {"log": []}, durability="exit")
    return [first, lib.read(app), lib.took(), lib.invoke(app, None, durability="exit"), lib.took(), lib.read(app)]


@scenario("P5 exit: a pause")
def _(lib: Library) -> Any:
    app = lib.beside("new", a=lib.says("a"), b=lib.asks("?"))
    first = lib.invoke(app, {"log": []}, durability="exit")
    return [
        first,
        lib.read(app),
        lib.took(),
        lib.invoke(app, lib.Command(resume=1), durability="exit"),
        lib.took(),
        lib.read(app),
    ]


@scenario("P5 exit: a subgraph that finishes is not stored, one that pauses is")
def _(lib: Library) -> Any:
    app = lib.chain("new", s=lib.chain(a=lib.says("a")), t=lib.chain(b=lib.says("b"), ask=lib.asks("?")), z=lib.says("z"))
    first = lib.invoke(app, {"log": []}, durability="exit")
    paused = [lib.look(app, subgraphs=True), len(lib.history(app, lib.inside(app)))]
    return [first, paused, lib.took(), lib.invoke(app, lib.Command(resume=1), durability="exit"), lib.took(), lib.read(app)]


@scenario("P5 exit: a subgraph that remembers is stored when it finishes")
def _(lib: Library) -> Any:
    app = lib.chain("new", s=lib.chain(True, a=lib.says("a")))
    first = lib.invoke(app, {"log": []}, durability="exit")
    return [first, len(lib.history(app, at("s"))), lib.invoke(app, {"log": []}, durability="exit"), lib.look(app, at("s"))]


@scenario("P6 a replay makes a branch and leaves the old history alone")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"), ask=lib.asks("?"), c=lib.says("c"))
    lib.invoke(app, {"log": []})
    lib.invoke(app, lib.Command(resume="one"))
    lib.took()
    again = lib.invoke(app, None, lib.at(app, "a"))
    return [again, lib.took(), lib.read(app), lib.invoke(app, lib.Command(resume="two")), lib.took(), lib.read(app)]


@scenario("P6 a replay of the head, and of the branch that it made")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"), ask=lib.asks("?"))
    lib.invoke(app, {"log": []})
    first = lib.invoke(app, None, lib.state(app).config)
    second = lib.invoke(app, None, lib.state(app).config)
    return [first, second, lib.read(app), lib.invoke(app, lib.Command(resume=1)), lib.read(app)]


@scenario("P6 a replay of an update, new and old")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"), b=lib.says("b"), c=lib.says("c"))
    lib.invoke(app, {"log": []})
    made = lib.update(app, {"log": ["u"]}, "a", lib.at(app, "a"))
    first = lib.invoke(app, None, made)
    return [first, lib.read(app), lib.invoke(app, None, made), lib.read(app)]


@scenario("P6 a replay of a finished head runs nothing")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"))
    lib.invoke(app, {"log": []})
    lib.took()
    return [lib.invoke(app, None, lib.state(app).config), lib.took(), lib.read(app)]


@scenario("P6 new input at an old checkpoint")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"), b=lib.says("b"))
    lib.invoke(app, {"log": []})
    return [lib.invoke(app, {"log": ["new"]}, lib.at(app, "b")), lib.read(app)]


@scenario("P6 a command at an old checkpoint")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"), b=lib.says("b"), c=lib.says("c"))
    lib.invoke(app, {"log": []})
    return [lib.invoke(app, lib.Command(goto="c", update={"log": ["u"]}), lib.at(app, "b")), lib.read(app)]


@scenario("P6 a replay of a superstep whose siblings had finished runs them again")
def _(lib: Library) -> Any:
    app = lib.beside("new", a=lib.says("a"), b=lib.asks("?"))
    lib.invoke(app, {"log": []})
    lib.took()
    return [lib.invoke(app, None, lib.state(app).config), lib.took(), lib.look(app)]


@scenario("P6 an unknown checkpoint is an empty thread")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"))
    lib.invoke(app, {"log": ["old"]})
    unknown = {"configurable": {"thread_id": "t", "checkpoint_id": "1f000000-0000-6000-8000-000000000000"}}
    return [lib.invoke(app, None, unknown), lib.invoke(app, {"log": ["new"]}, unknown), lib.look(app)]


@scenario("P6 a parent's replay starts its subgraph anew")
def _(lib: Library) -> Any:
    app = lib.chain("new", x=lib.says("x"), s=lib.chain(a=lib.says("a"), ask=lib.asks("?")), z=lib.says("z"))
    lib.invoke(app, {"log": []})
    lib.invoke(app, lib.Command(resume=1))
    lib.took()
    again = [lib.invoke(app, None, lib.at(app, node)) for node in ("x", "s")]
    return [again, lib.took(), lib.invoke(app, lib.Command(resume=2)), lib.took()]


@scenario("P6 a parent's replay takes a subgraph that remembers back")
def _(lib: Library) -> Any:
    app = lib.chain("new", x=lib.says("x"), s=lib.chain(True, a=lib.says("a")))
    for word in "12":
        lib.invoke(app, {"log": [word]})
    past = [h.config for h in lib.history(app) if h.next in (("x",), ("s",))]
    return [[lib.invoke(app, None, old), lib.look(app, at("s"))["values"]] for old in past]


@scenario("P6 a replay of an update takes a subgraph that remembers back to what was updated")
def _(lib: Library) -> Any:
    app = lib.chain("new", x=lib.says("x"), s=lib.chain(True, a=lib.says("a")))
    for word in "12":
        lib.invoke(app, {"log": [word]})
    old = [h for h in lib.history(app) if h.next == ("s",)][-1]
    made = lib.update(app, {"log": ["u"]}, "x", old.config)
    return [lib.invoke(app, None, made), lib.look(app, at("s"))["values"]]


@scenario("P6 later visits of a subgraph that remembers go on from the first")
def _(lib: Library) -> Any:
    graph = lib.StateGraph(State)
    graph.add_node("s", lib.chain(True, a=lib.says("a")))
    graph.add_edge(lib.START, "s")
    graph.add_conditional_edges("s", lambda state: "s" if len(state["log"]) < 12 else lib.END)
    app = lib.compiled(graph, "new")
    first = lib.invoke(app, {"log": []})
    old = [h for h in lib.history(app) if h.next == ("s",)][-1]
    return [first, lib.look(app, at("s"))["values"], lib.invoke(app, None, old.config), lib.look(app, at("s"))["values"]]


@scenario("P8 a subgraph is fresh each time")
def _(lib: Library) -> Any:
    app = lib.chain("new", s=lib.chain(a=lib.says("a"), ask=lib.asks("?")))
    found = [lib.invoke(app, {"log": ["1"]}), lib.look(app, subgraphs=True), lib.invoke(app, lib.Command(resume="x"))]
    return [*found, lib.invoke(app, {"log": ["2"]}), lib.look(app, subgraphs=True)]


@scenario("P8 a subgraph that remembers")
def _(lib: Library) -> Any:
    app = lib.chain("new", s=lib.chain(True, a=lib.says("a"), ask=lib.asks("?")))
    found = [lib.invoke(app, {"log": ["1"]}), lib.look(app, subgraphs=True), lib.invoke(app, lib.Command(resume="x"))]
    return [
        *found,
        lib.read(app, at("s")),
        lib.invoke(app, {"log": ["2"]}),
        lib.look(app, subgraphs=True),
        lib.read(app, at("s")),
    ]


@scenario("P8 a subgraph without a saver")
def _(lib: Library) -> Any:
    app = lib.chain("new", s=lib.chain(False, a=lib.says("a"), ask=lib.asks("?")))
    found = [lib.invoke(app, {"log": ["1"]}), lib.look(app, subgraphs=True), lib.took()]
    return [*found, lib.invoke(app, lib.Command(resume="x")), lib.took(), list(dict(app.get_subgraphs()))]


@scenario("P8 a subgraph that has a saver where the parent has none")
def _(lib: Library) -> Any:
    app = lib.chain(None, s=lib.chain("new", a=lib.says("a")))
    return [lib.invoke(app, {"log": []}), lib.took()]


@scenario("P8 True at the root")
def _(lib: Library) -> Any:
    app = lib.chain(True, a=lib.says("a"))
    return "refused" if str(lib.invoke(app, {"log": []})).startswith("raises") else "taken"


@scenario("P8 two calls in one node")
def _(lib: Library) -> Any:
    app = lib.chain("new", n=lib.calls(lib.chain(a=lib.says("a"), ask=lib.asks("?")), 2), z=lib.says("z"))
    found = [lib.invoke(app, {"log": []}), lib.look(app, subgraphs=True), lib.took()]
    ns = lib.inside(app)["configurable"]["checkpoint_ns"]
    found += [lib.invoke(app, lib.Command(resume="one")), lib.took(), lib.look(app, at(ns)), lib.look(app, at(f"{ns}|1"))]
    return [*found, lib.invoke(app, lib.Command(resume="two")), lib.took()]


@scenario("P8 two calls in one node, remembering")
def _(lib: Library) -> Any:
    app = lib.chain("new", n=lib.calls(lib.chain(True, a=lib.says("a"), ask=lib.asks("?")), 2))
    found = [lib.invoke(app, {"log": []}), lib.took(), lib.invoke(app, lib.Command(resume="one")), lib.took()]
    found += [lib.invoke(app, lib.Command(resume="two")), lib.took(), lib.look(app, at("n")), lib.look(app, at("n|1"))]
    return [*found, lib.invoke(app, {"log": []}), lib.took(), lib.look(app, at("n"))]


@scenario("P9 live and addressed views of a superstep that is half done")
def _(lib: Library) -> Any:
    app = lib.beside("new", a=lib.says("a"), b=lib.asks("?"), d=lib.fails())
    lib.invoke(app, {"log": []}, IN_TURN)
    return [lib.look(app), lib.look(app, lib.state(app).config)]


@scenario("P9 live and addressed views of a superstep that was answered")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"), b=lib.asks("?"), c=lib.says("c"))
    lib.invoke(app, {"log": []})
    old = lib.state(app).config
    lib.invoke(app, lib.Command(resume=1))
    return [lib.look(app), lib.look(app, old)]


@scenario("P9 views of a command's update")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"), b=lib.asks("p", "q"))
    lib.invoke(app, {"log": []})
    lib.invoke(app, lib.Command(resume=1, update={"log": ["u"]}))
    return [lib.look(app), lib.look(app, lib.state(app).config)["values"]]


@scenario("P9 a nested state at depth")
def _(lib: Library) -> Any:
    inner = lib.chain(a=lib.says("a"), ask=lib.asks("?"))
    app = lib.chain("new", m=lib.chain(n=lib.chain(o=inner, p=lib.says("p"))))
    lib.invoke(app, {"log": []})
    return [lib.look(app, subgraphs=True), lib.look(app, lib.state(app).config, subgraphs=True), lib.look(app)]


@scenario("P9 reading what is not there")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"))
    empty = lib.look(app)
    lib.invoke(app, {"log": []})
    return [empty["values"], empty["next"], lib.look(app, at("nobody:1"))["values"], lib.read(app, at("nobody:1"))]


@scenario("P14 a thread is its id's text")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"))
    lib.invoke(app, {"log": []}, {"configurable": {"thread_id": 5}})
    return [
        lib.look(app, {"configurable": {"thread_id": "5"}})["values"],
        lib.look(app, {"configurable": {"thread_id": 5}})["values"],
    ]


# --- interrupts and commands (I1 to I15) -------------------------------------------------------------------


@scenario("I1 two questions of one node")
def _(lib: Library) -> Any:
    app = lib.chain("new", ask=lib.asks("p", "q"))
    found = [lib.invoke(app, {"log": []}), lib.invoke(app, lib.Command(resume="1")), lib.look(app)]
    return [*found, lib.invoke(app, lib.Command(resume="2")), lib.took(), lib.read(app)]


@scenario("I2 I3 questions at once")
def _(lib: Library) -> Any:
    app = lib.beside("new", a=lib.asks("p"), b=lib.asks("q"), c=lib.says("c"))
    found = [lib.invoke(app, {"log": []}), lib.look(app), lib.invoke(app, lib.Command(resume="x")), lib.took()]
    ids = {i.value: i.id for i in lib.state(app).interrupts}
    found += [lib.invoke(app, lib.Command(resume={ids["p"]: "P"})), lib.took(), lib.look(app)]
    return [*found, lib.invoke(app, lib.Command(resume={ids["q"]: "Q"})), lib.took(), lib.read(app)]


@scenario("I3 all questions at once are answered at once")
def _(lib: Library) -> Any:
    app = lib.beside("new", a=lib.asks("p"), b=lib.asks("q"))
    lib.invoke(app, {"log": []})
    return lib.invoke(app, lib.Command(resume={i.id: i.value.upper() for i in lib.state(app).interrupts}))


for word, answer in {"nothing": 0, "empty": "", "no": False, "none": [], "a dict": {"yes": 1}}.items():

    @scenario(f"I4 {word} is an answer")
    def _(lib: Library, answer: Any = answer) -> Any:
        app = lib.chain("new", ask=lib.asks("p"))
        return [lib.invoke(app, {"log": []}), lib.invoke(app, lib.Command(resume=answer))]


@scenario("I4 an empty map answers nothing")
def _(lib: Library) -> Any:
    app = lib.chain("new", ask=lib.asks("p"))
    return [
        lib.invoke(app, {"log": []}),
        lib.invoke(app, lib.Command(resume={})),
        lib.took(),
        lib.invoke(app, lib.Command(resume=1)),
    ]


@scenario("I5 a question in a subgraph is listed by its parents")
def _(lib: Library) -> Any:
    app = lib.chain("new", m=lib.chain(n=lib.chain(ask=lib.asks("?"))))
    lib.invoke(app, {"log": []})
    found = lib.state(app, subgraphs=True)
    inner = found.tasks[0].state.tasks[0].state
    return [lib.look(app, subgraphs=True), found.interrupts[0].id == inner.interrupts[0].id]


@scenario("I6 a resume in a subgraph runs the node that asked")
def _(lib: Library) -> Any:
    app = lib.chain("new", x=lib.says("x"), m=lib.chain(a=lib.says("a"), ask=lib.asks("?"), b=lib.says("b")), z=lib.says("z"))
    return [lib.invoke(app, {"log": []}), lib.took(), lib.invoke(app, lib.Command(resume=1)), lib.took()]


@scenario("I6 a resume in a subgraph that node code calls runs the caller too")
def _(lib: Library) -> Any:
    app = lib.chain("new", m=lib.calls(lib.chain(a=lib.says("a"), ask=lib.asks("?"), b=lib.says("b"))))
    return [lib.invoke(app, {"log": []}), lib.took(), lib.invoke(app, lib.Command(resume=1)), lib.took()]


@scenario("I6 questions of subgraphs at once")
def _(lib: Library) -> Any:
    app = lib.beside("new", p=lib.chain(a=lib.says("a"), ask=lib.asks("p?")), q=lib.chain(b=lib.says("b"), ask=lib.asks("q?")))
    found = [lib.invoke(app, {"log": []}), lib.took()]
    ids = {i.value: i.id for i in lib.state(app).interrupts}
    found += [lib.invoke(app, lib.Command(resume={ids["q?"]: 1})), lib.took(), lib.look(app, subgraphs=True)]
    return [*found, lib.invoke(app, lib.Command(resume=2)), lib.took()]


@scenario("I7 a breakpoint before and after every node")
def _(lib: Library) -> Any:
    app = lib.chain("new", x=lib.says("x"), y=lib.says("y"))
    stars = {"interrupt_before": "*", "interrupt_after": "*"}
    found = [lib.invoke(app, {"log": []}, **stars)]
    for _ in range(4):
        found += [lib.look(app), lib.invoke(app, None, **stars)]
    return found


@scenario("I7 new input at a breakpoint begins anew")
def _(lib: Library) -> Any:
    app = lib.chain("new", {"interrupt_before": ["y"]}, x=lib.says("x"), y=lib.says("y"))
    found = [lib.invoke(app, {"log": []}), lib.invoke(app, {"log": ["new"]}), lib.took()]
    return [*found, lib.invoke(app, None), lib.took(), lib.invoke(app, None), lib.took()]


@scenario("I7 a breakpoint is passed by a command")
def _(lib: Library) -> Any:
    app = lib.chain("new", {"interrupt_before": ["y"]}, x=lib.says("x"), y=lib.says("y"))
    return [lib.invoke(app, {"log": []}), lib.invoke(app, lib.Command(update={"log": ["u"]})), lib.took()]


@scenario("I7 breakpoints inside a subgraph stop the whole run")
def _(lib: Library) -> Any:
    inner = lib.chain(
        None, {"interrupt_before": ["b"], "interrupt_after": ["b"]}, a=lib.says("a"), b=lib.says("b"), c=lib.says("c")
    )
    app = lib.chain("new", x=lib.says("x"), s=inner, z=lib.says("z"))
    found = [lib.invoke(app, {"log": []}), lib.look(app, subgraphs=True), lib.took()]
    found += [lib.invoke(app, None), lib.look(app, subgraphs=True), lib.took()]
    return [*found, lib.invoke(app, None), lib.took(), lib.look(app)]


@scenario("I7 a breakpoint inside a subgraph that node code calls")
def _(lib: Library) -> Any:
    inner = lib.chain(None, {"interrupt_before": ["b"]}, a=lib.says("a"), b=lib.says("b"))
    app = lib.chain("new", s=lib.calls(inner), z=lib.says("z"))
    return [lib.invoke(app, {"log": []}), lib.took(), lib.look(app), lib.invoke(app, None), lib.took()]


@scenario("I9 an error beside a question")
def _(lib: Library) -> Any:
    app = lib.beside("new", a=lib.asks("?"), b=lib.fails())
    found = [lib.invoke(app, {"log": []}, IN_TURN), lib.look(app)["interrupts"], lib.took()]
    return [*found, lib.invoke(app, lib.Command(resume=1)), lib.took()]


@scenario("I10 retry policies do not try a question again")
def _(lib: Library) -> Any:
    graph = lib.StateGraph(State)
    policy = lib.RetryPolicy(initial_interval=0.0, jitter=False, retry_on=Exception)
    graph.add_node("ask", lib.asks("?"), retry_policy=policy)
    graph.add_edge(lib.START, "ask")
    app = lib.compiled(graph, "new")
    return [lib.invoke(app, {"log": []}), lib.took(), lib.invoke(app, lib.Command(resume=1))]


@scenario("I11 a command for the parent runs its goto and the node's own edges")
def _(lib: Library) -> Any:
    inner = lib.StateGraph(State)
    inner.add_node("a", lambda state: lib.Command(graph=lib.Command.PARENT, goto="y", update={"log": ["up"]}))
    inner.add_edge(lib.START, "a")
    graph = lib.StateGraph(State)
    graph.add_node("s", inner.compile())
    graph.add_node("y", lib.says("y"))
    graph.add_node("z", lib.says("z"))
    graph.add_edge(lib.START, "s")
    graph.add_edge("s", "z")
    app = lib.compiled(graph, "new")
    return [lib.invoke(app, {"log": []}), lib.took(), lib.read(app)]


@scenario("I11 a command for the parent at the root")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lambda state: lib.Command(graph=lib.Command.PARENT, goto="y"))
    return lib.invoke(app, {"log": []})


@scenario("I12 a goto on a finished thread")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"), b=lib.says("b"))
    found = [lib.invoke(app, {"log": []}), lib.invoke(app, lib.Command(goto="b", update={"log": ["u"]})), lib.took()]
    return [*found, [snapshot["values"] for snapshot in lib.read(app)]]


@scenario("I12 a goto on a paused thread runs with what is pending")
def _(lib: Library) -> Any:
    app = lib.chain("new", ask=lib.asks("?"), b=lib.says("b"))
    found = [lib.invoke(app, {"log": []}), lib.invoke(app, lib.Command(goto="b", update={"log": ["u"]})), lib.took()]
    return [*found, lib.invoke(app, lib.Command(resume=1)), lib.took(), lib.look(app)]


@scenario("I15 strict resume")
def _(lib: Library) -> Any:
    strict = {"configurable": {"thread_id": "t", "__pregel_strict_resume": True}}
    app = lib.beside("new", a=lib.asks("p"), b=lib.asks("q"))
    lib.invoke(app, {"log": []})
    before = lib.read(app)
    found = []
    for resume in ({}, {"0" * 32: 1}, "plain"):
        try:
            lib.colour.invoke(app, lib.Command(resume=resume), strict)
        except Exception as error:  # UnknownInterruptError of either library
            reason, pending = error.reason, error.pending_ids  # type: ignore[attr-defined]
            found.append((reason, len(getattr(error, "interrupt_ids", ()) or ()), len(pending)))
    answers = {i.id: 1 for i in lib.state(app).interrupts}
    return [found, lib.read(app) == before, lib.invoke(app, lib.Command(resume=answers), strict)]


@scenario("an update passes a question by")
def _(lib: Library) -> Any:
    app = lib.chain("new", ask=lib.asks("?"), b=lib.says("b"))
    lib.invoke(app, {"log": []})
    lib.update(app, {"log": ["said"]}, "ask")
    return [lib.look(app), lib.invoke(app, None), lib.took(), lib.read(app)]


@scenario("an update beside a question asks it again under another id")
def _(lib: Library) -> Any:
    app = lib.beside("new", a=lib.asks("p"), b=lib.asks("q"))
    lib.invoke(app, {"log": []})
    old = {i.id for i in lib.state(app).interrupts}
    lib.update(app, {"log": ["u"]}, "__start__")
    again = lib.invoke(app, None)
    return [again, old.isdisjoint(i.id for i in lib.state(app).interrupts), lib.look(app)]


@scenario("a question is answered after its thread was updated")
def _(lib: Library) -> Any:
    app = lib.chain("new", a=lib.says("a"), ask=lib.asks("?"), b=lib.says("b"))
    lib.invoke(app, {"log": []})
    lib.update(app, {"log": ["u"]}, "a")
    lib.update(app, {"log": ["v"]}, "a")
    return [lib.invoke(app, lib.Command(resume=1)), lib.took(), lib.read(app)]


@scenario("a question is answered after a sibling was updated past its own")
def _(lib: Library) -> Any:
    app = lib.beside("new", a=lib.asks("p"), b=lib.asks("q"))
    lib.invoke(app, {"log": []})
    return [lib.update(app, {"log": ["u"]}, "__start__") and None, lib.invoke(app, None), lib.took()]


@scenario("an answer after an update that passed the question by")
def _(lib: Library) -> Any:
    app = lib.chain("new", ask=lib.asks("?"), b=lib.says("b"))
    lib.invoke(app, {"log": []})
    lib.update(app, {"log": ["said"]}, "ask")
    return [lib.invoke(app, lib.Command(resume=1)), lib.took()]


for form in ("as a node", "by node code", "remembering", "two levels down"):

    @scenario(f"a question in a subgraph is answered after the subgraph was updated, {form}")
    def _(lib: Library, form: str = form) -> Any:
        inner = lib.chain(True if form == "remembering" else None, a=lib.says("a"), ask=lib.asks("?"), b=lib.says("b"))
        middle = lib.chain(m=inner) if form == "two levels down" else inner
        app = lib.chain("new", s=lib.calls(inner) if form == "by node code" else middle, z=lib.says("z"))
        lib.invoke(app, {"log": []})
        found = lib.state(app, subgraphs=True).tasks[0].state
        config = found.tasks[0].state.config if form == "two levels down" else found.config
        where = {key: config["configurable"][key] for key in ("thread_id", "checkpoint_ns")}
        lib.update(app, {"log": ["u"]}, "a", {"configurable": where})
        return [lib.took(), lib.invoke(app, lib.Command(resume=1)), lib.took()]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_thread_does_what_it_does_in_langgraph(name: str, colour: Colour) -> None:
    """What runs, what comes out and what can be read are the same, step by step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = SCENARIOS[name](Library("langgraph", colour))
        ours = SCENARIOS[name](Library("tracegraph", colour))

    assert ours == oracle


def test_the_scenarios_are_told() -> None:
    """Each compares something."""
    assert len(SCENARIOS) > 50
