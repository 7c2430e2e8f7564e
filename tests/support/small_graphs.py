"""Graphs of a few named nodes over one state, savers that count as doing I/O, and a bell for the end of a run."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.graph import START, StateGraph

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}
PATIENCE_S = 10.0
"""Longest wait for something that a correct run brings about at once."""


class State(TypedDict, total=False):
    """A log that every node may write to, and one plain number."""

    xs: Annotated[list[Any], operator.add]
    n: int


class Listening(BaseCallbackHandler):
    """Keeps (what, name) of every run that ends, and rings a bell when one of the given name does."""

    def __init__(self, name: str = "LangGraph") -> None:
        self.bell = threading.Event()
        self.ends: list[tuple[str, str]] = []
        self._name = name
        self._names: dict[Any, str] = {}

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """Remember the run's name."""
        self._names[kwargs["run_id"]] = kwargs["name"]

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        """Note an end that is a result."""
        self._note("end", kwargs)

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """Note an end that is none."""
        self._note(type(error).__name__, kwargs)

    def _note(self, what: str, kwargs: dict[str, Any]) -> None:
        name = self._names[kwargs["run_id"]]
        self.ends.append((what, name))
        if name == self._name:
            self.bell.set()


class SlowSaver(InMemorySaver):
    """A saver whose saves count as I/O, so that the drivers put them where they put a database's."""

    does_io = True

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        """Save as ``put`` does."""
        return self.put(*args, **kwargs)

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        """Save as ``put_writes`` does."""
        self.put_writes(*args, **kwargs)


def parallel(options: Mapping[str, Any] | None = None, /, **bodies: Any) -> Any:
    """Return a graph whose nodes run side by side; *options* are those of ``compile``."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, body in bodies.items():
        graph.add_node(name, body)
        graph.add_edge(START, name)
    return graph.compile(**(options or {}))


def chain(options: Mapping[str, Any] | None = None, /, **bodies: Any) -> Any:
    """Return a graph whose nodes run one after the other; *options* are those of ``compile``."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence(list(bodies.items()))
    graph.add_edge(START, next(iter(bodies)))
    return graph.compile(**(options or {}))


def saving(saver: InMemorySaver | None = None) -> dict[str, Any]:
    """Return the compile options of a graph with a saver."""
    return {"checkpointer": saver or InMemorySaver()}


def says(*words: Any) -> Callable[[State], State]:
    """Return a node that writes *words* to the log."""

    def body(state: State) -> State:
        return {"xs": list(words)}

    return body


def wait_for(event: threading.Event) -> None:
    """Wait for what must happen soon."""
    assert event.wait(PATIENCE_S), "it never happened"


def bounded(run: Callable[[], Any]) -> Any:
    """Call *run* in a thread of its own and return what it did, or raise what it raised; a hang fails the test."""
    outcome: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            outcome.append((run(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(2 * PATIENCE_S)
    assert outcome, "it hangs"
    returned, error = outcome[0]
    if error is not None:
        raise error
    return returned


def values_of(questions: Sequence[Any]) -> list[Any]:
    """Return what interrupts ask, sorted."""
    return sorted(question.value for question in questions)
