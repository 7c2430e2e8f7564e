"""The commands and their options; what they do is in the modules beside this one, loaded when they are called."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tracegraph.cli import trace_commands
from tracegraph.cli.options import MOST, Json, reported
from tracegraph.cli.output import ExitCode, RunOptions, note, one_line
from tracegraph.version import VERSION

__all__ = ["app"]


class _OneLineErrors(TyperGroup):
    """Prints a wrong command line as one line, like every other error, instead of a box around it."""

    def main(self, *args: Any, **extra: Any) -> Any:
        if not extra.get("standalone_mode", True):
            return super().main(*args, **extra)
        try:
            code = super().main(*args, **(extra | {"standalone_mode": False}))
        except Exception as error:
            # By duck type: typer brings a click of its own in some versions, and uses the installed one in others.
            describe = getattr(error, "format_message", None)
            if describe is None:
                if type(error).__name__ != "Abort":
                    raise
                sys.exit(ExitCode.KEYBOARD)
            note(f"error: {one_line(describe())}")
            sys.exit(ExitCode.USAGE)
        sys.exit(code if isinstance(code, int) else ExitCode.COMPLETED)


app = typer.Typer(
    name="tracegraph",
    help="Run graphs, look at their traces, and go on with what they saved.",
    cls=_OneLineErrors,
    add_completion=False,
    # A traceback with local variables would print what a run was working on.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Target = Annotated[str, typer.Argument(metavar="FILE.py:GRAPH", help="The graph: FILE.py:name or module:name.")]
Thread = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")]
At = Annotated[str | None, typer.Option(metavar="CHECKPOINT", help="A checkpoint's id, or how it begins.")]
Config = Annotated[str | None, typer.Option(metavar="JSON|@FILE", help="More of the run's config.")]
Store = Annotated[bool, typer.Option("--store/--no-store", help="Keep the trace in the embedded store.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="Print the traceback of a failed run.")]
Db = Annotated[
    str | None,
    typer.Option(metavar="PATH|URL", help="The checkpoint database: a SQLite file or postgresql://...; else the user's own."),
]


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(f"tracegraph {VERSION}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(ExitCode.USAGE)


@app.command()
def run(
    target: Target,
    input_: Annotated[
        str | None, typer.Option("--input", "-i", metavar="JSON|@FILE|-", help="The input: JSON, a file of it, or - for stdin.")
    ] = None,
    thread: Annotated[str | None, typer.Option(metavar="ID", help="The thread to start or continue.")] = None,
    db: Db = None,
    config: Config = None,
    is_json: Json = False,
    stream: Annotated[
        str | None,
        typer.Option(metavar="MODES", help="With --json: write parts of these modes, as updates,custom, as lines of JSON."),
    ] = None,
    store: Store = True,
    traceback: Traceback = False,
) -> None:
    """Run a graph and print its result; the trace id goes to stderr.

    With --thread the run is saved: by the graph's own checkpointer, else in the checkpoint database.

    Exit codes: 0 completed, 1 failed, 2 cannot be run, 3 paused, 4 no such thread to continue, 130 stopped by Ctrl-C,
    143 stopped by SIGTERM between two supersteps.
    """
    from tracegraph.cli.run import run_graph

    with reported():
        code = run_graph(
            target,
            input_text=input_,
            thread_id=thread,
            db=db,
            config_text=config,
            stream=stream,
            options=RunOptions(is_json, store, traceback),
        )
    raise typer.Exit(code)


@app.command()
def resume(
    target: Target,
    thread: Thread,
    value: Annotated[str | None, typer.Option(metavar="JSON|@FILE|-", help="The answer to the only question.")] = None,
    answers: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID=JSON", help="The answer to one of several questions; repeat it.")
    ] = None,
    db: Db = None,
    config: Config = None,
    is_json: Json = False,
    store: Store = True,
    traceback: Traceback = False,
) -> None:
    """Go on with a thread: answer its questions, or, without an answer, pass a breakpoint or try again what failed.

    Exit codes: those of `run`, and 4 no such thread, 5 nothing to resume, 6 the answers do not fit the questions.
    """
    from tracegraph.cli.resume import resume_thread

    with reported():
        code = resume_thread(
            target,
            thread,
            value_text=value,
            answer_texts=answers or (),
            db=db,
            config_text=config,
            options=RunOptions(is_json, store, traceback),
        )
    raise typer.Exit(code)


@app.command()
def threads(
    db: Db = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST, help="How many, last saved first.")] = 20,
    is_json: Json = False,
) -> None:
    """List the threads in a checkpoint database."""
    from tracegraph.cli.threads import list_threads

    with reported():
        list_threads(db, limit, is_json=is_json)


@app.command()
def state(
    thread: Thread,
    at: At = None,
    history: Annotated[bool, typer.Option("--history", help="List the checkpoints, newest first.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what changed since the checkpoint before.")] = False,
    target: Annotated[
        str | None, typer.Option("--graph", metavar="FILE.py:GRAPH", help="The graph: it tells what is next, and the tasks.")
    ] = None,
    db: Db = None,
    is_json: Json = False,
) -> None:
    """Show the state of a thread, at its head or at a checkpoint; with --history --at, that one's ancestors.

    Exit codes: 0, 2 cannot be read, 4 no such database, thread or checkpoint.
    """
    from tracegraph.cli.state import show_state

    with reported():
        show_state(thread, db=db, at=at, target=target, has_history=history, has_diff=diff, is_json=is_json)


@app.command()
def fork(
    target: Target,
    thread: Thread,
    at: At = None,
    values: Annotated[str | None, typer.Option(metavar="JSON|@FILE|-", help="What to write to the state there.")] = None,
    as_node: Annotated[
        str | None, typer.Option(metavar="NODE", help="The node that is taken to have returned it; else the last one.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="ID", help="Do it in a copy of the thread with this id.")] = None,
    db: Db = None,
    is_json: Json = False,
) -> None:
    """Go back to a checkpoint, change the state, or both; nothing runs until `resume`, and nothing of the history is lost.

    Exit codes: 0, 1 code of the graph failed, 2 cannot be done, 4 no such database, thread or checkpoint.
    """
    from tracegraph.cli.fork import fork_thread

    with reported():
        fork_thread(target, thread, db=db, at=at, values_text=values, as_node=as_node, to=to, is_json=is_json)


for command in (trace_commands.traces, trace_commands.trace, trace_commands.stats, trace_commands.diff, trace_commands.tail):
    app.command()(command)
app.add_typer(trace_commands.store)


@app.command()
def spool(
    send: Annotated[
        float | None, typer.Option("--send", metavar="SECONDS", min=0.0, help="First send what waits, for so long at most.")
    ] = None,
    is_json: Json = False,
) -> None:
    """Show the telemetry that waits for a collector, and what was lost.

    Exit codes: 0, 1 with --send if something still waits, 2 cannot be read.
    """
    from tracegraph.cli.spool import show_spool

    with reported():
        code = show_spool(send_s=send, is_json=is_json)
    raise typer.Exit(code)


@app.command()
def graph(
    target: Target,
    xray: Annotated[bool, typer.Option("--xray", help="Open subgraphs.")] = False,
    is_json: Json = False,
) -> None:
    """Print a graph as Mermaid text."""
    from tracegraph.cli.graph import draw_graph

    with reported():
        draw_graph(target, xray=xray, is_json=is_json)


@app.command(name="import-langgraph")
def import_langgraph(
    database: Annotated[str, typer.Argument(metavar="DB", help="LangGraph's SQLite file, or a postgresql:// URL.")],
    thread: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A thread to import; may be repeated. All if none.")
    ] = None,
    db: Db = None,
    graph: Annotated[
        str | None,
        typer.Option(metavar="FILE.py:GRAPH", help="The graph, for edges that very old threads do not show."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE[:CLASS]", help="A class that stored objects may become again; may be repeated."),
    ] = None,
    unknown_as_data: Annotated[
        bool,
        typer.Option("--unknown-as-data", help="Keep objects of other classes as plain data, rather than refuse the thread."),
    ] = False,
    is_json: Json = False,
) -> None:
    """Import threads from a LangGraph checkpoint database, which is left as it is.

    Exit codes: 0 all threads are there, 1 some were refused, 2 a database cannot be used, 4 there is no such file or thread.
    """
    from tracegraph.cli.import_langgraph import ImportOptions
    from tracegraph.cli.import_langgraph import import_langgraph as import_threads

    with reported():
        options = ImportOptions(thread or (), db, graph, allow or (), unknown_as_data, is_json)
        code = import_threads(database, options)
    raise typer.Exit(code)
