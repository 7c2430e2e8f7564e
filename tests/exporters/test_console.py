"""The console tree: printed once a trace's local root has ended, plain where nobody looks through a terminal."""

from __future__ import annotations

import io
from typing import Any

from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, StatusCode, TraceFlags

from tracegraph_exporters import ConsoleTreeExporter, build_tree, render_plain, render_rich, to_record


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def lines_of(out: io.StringIO) -> list[str]:
    return out.getvalue().splitlines()


def test_tree_is_printed_when_its_root_ends(maker: Any) -> None:
    """Children wait in silence; indentation, step numbers and durations show the shape of the run."""
    out = io.StringIO()
    exporter = ConsoleTreeExporter(out)
    *children, root = maker.run(steps=2)

    exporter.export(children)
    assert out.getvalue() == ""
    exporter.export([root])

    assert lines_of(out)[1:] == [
        "invoke_workflow g  3.0 ms",
        "  run_step n0  step 0  1.0 ms",
        "  run_step n1  step 1  1.0 ms",
    ]
    assert lines_of(out)[0] == f"trace {to_record(root).trace_id}"


def test_plain_output_has_no_escape_codes_and_a_terminal_has_guides(maker: Any) -> None:
    """A pipe gets text; a terminal gets the same words with lines between them."""
    plain, terminal = io.StringIO(), Terminal()
    batch = maker.run()
    ConsoleTreeExporter(plain).export(batch)
    ConsoleTreeExporter(terminal).export(batch)

    assert plain.getvalue().isascii()
    assert "\x1b" not in plain.getvalue()
    assert "run_step n1" in terminal.getvalue()
    assert "└──" in terminal.getvalue()


def test_default_stream_is_standard_error(maker: Any, capsys: Any) -> None:
    """A program's own output stays clean."""
    ConsoleTreeExporter().export(maker.run())

    out, err = capsys.readouterr()
    assert out == ""
    assert "invoke_workflow g" in err


def test_two_traces_at_once_are_not_mixed(maker: Any) -> None:
    """Each tree is printed when its own root ends."""
    out = io.StringIO()
    first, second = maker.start("first"), maker.start("second", at_ms=1)
    maker.end(maker.start("under second", second, at_ms=2))
    maker.end(maker.start("under first", first, at_ms=3))
    maker.end(second, at_ms=20)
    maker.end(first, at_ms=21)

    ConsoleTreeExporter(out).export(maker.take())

    assert [line.split("  ")[0] or line.split("  ")[1] for line in lines_of(out) if not line.startswith("trace")] == [
        "second", "under second", "first", "under first",
    ]  # fmt: skip


def test_remote_parent_makes_a_local_root(maker: Any) -> None:
    """A service in the middle of a trace prints its own part, once for each request."""
    out = io.StringIO()
    remote = NonRecordingSpan(SpanContext(0xAB, 0xCD, is_remote=True, trace_flags=TraceFlags(1)))
    one, two = maker.start("request 1", remote), maker.start("request 2", remote, at_ms=1)
    maker.end(maker.start("work 2", two, at_ms=2))
    maker.end(one)
    exporter = ConsoleTreeExporter(out)
    exporter.export(maker.take())
    assert "request 1" in out.getvalue() and "work 2" not in out.getvalue()

    maker.end(two)
    exporter.export(maker.take())
    assert lines_of(out)[-2:] == ["request 2  9.0 ms", "  work 2  8.0 ms"]


def test_spans_that_never_find_their_root_are_printed_at_shutdown(maker: Any) -> None:
    """A crash of the root's owner or a late background save loses nothing."""
    out = io.StringIO()
    exporter = ConsoleTreeExporter(out)
    maker.end(maker.start("late", maker.start("never ends")))
    exporter.export(maker.take())

    exporter.shutdown()
    exporter.shutdown()

    assert [line.strip() for line in lines_of(out)[1:]] == ["late  10.0 ms  parent not seen"]


def test_waiting_spans_are_bounded(maker: Any) -> None:
    """A root that never ends must not eat the memory: the oldest trace is printed as it is."""
    out = io.StringIO()
    exporter = ConsoleTreeExporter(out, max_waiting=10)
    endless = maker.start("endless")
    for number in range(11):
        maker.end(maker.start(f"child {number}", endless))
    exporter.export(maker.take())

    assert "11 more spans" in out.getvalue()
    assert exporter._count == 0


def test_tree_shows_failures_interrupts_retries_and_links(maker: Any) -> None:
    """What one looks for in a trace stands in its line."""
    other = Link(SpanContext(0xFEED << 112, 1, is_remote=True, trace_flags=TraceFlags(1)))
    root = maker.start("invoke_workflow g", attributes={"tracegraph.run.status": "interrupted"}, links=[other])
    step = maker.start("run_step ask", root, at_ms=1, attributes={"tracegraph.superstep": 4, "tracegraph.task.attempts": 2})
    attempt = maker.start("attempt", step, at_ms=1, attributes={"tracegraph.attempt.number": 1})
    attempt.set_status(StatusCode.ERROR, "no route\nto host")
    maker.end(attempt, at_ms=2)
    maker.end(step, at_ms=5)
    maker.end(maker.start("run_step hit", root, at_ms=6, attributes={"tracegraph.cache.hit": True}), at_ms=6)
    usage = {"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 3}
    maker.end(maker.start("chat m", root, at_ms=7, attributes=usage), at_ms=8)
    maker.end(root, at_ms=9)

    text = render_plain(build_tree(map(to_record, maker.take())))

    assert text.splitlines() == [
        "invoke_workflow g  9.0 ms  interrupted  linked to feed0000",
        "  run_step ask  step 4  4.0 ms  2 attempts",
        "    attempt 1  1.0 ms  error: no route",
        "  run_step hit  0.0 us  cached",
        "  chat m  1.0 ms  5 tokens in, 3 out",
    ]


def test_details_are_shown_on_demand(maker: Any) -> None:
    """Attributes, events with their offset, and links, each on a line of its own."""
    root = maker.start("root", attributes={"k": ("a", "b"), "text": "two\nlines"})
    root.add_event("happened", {"why": "because"}, timestamp=root.start_time + 1_500_000)
    maker.end(root)

    text = render_plain(build_tree(map(to_record, maker.take())), has_attributes=True)

    assert text.splitlines()[1:] == [
        '  k = ["a","b"]',
        '  text = "two\\nlines"',
        "  event happened at +1.5 ms  why=because",
    ]


def test_wide_fan_out_is_shortened_and_says_so(maker: Any) -> None:
    """Nobody reads a thousand siblings; the count of errors among the hidden ones is kept."""
    root = maker.start("root")
    for number in range(60):
        span = maker.start(f"child {number}", root, at_ms=number)
        if number == 55:
            span.set_status(StatusCode.ERROR, "x")
        maker.end(span, at_ms=number + 1)
    maker.end(root, at_ms=99)
    tree = build_tree(map(to_record, maker.take()))

    assert render_plain(tree).splitlines()[-1] == "  ... and 10 more (10 spans, 1 with errors)"
    assert len(render_plain(tree, max_siblings=None).splitlines()) == 61


def test_square_brackets_in_names_are_text(maker: Any) -> None:
    """Names are the user's: rich markup in them is not obeyed."""
    maker.end(maker.start("[bold red]name[/]"))
    out = Terminal()
    batch = maker.take()

    ConsoleTreeExporter(out).export(batch)

    assert "[bold red]name[/]" in out.getvalue()
    assert str(render_rich(build_tree(map(to_record, batch)))[0].label).startswith("[bold red]name[/]")


def test_deep_chain_needs_no_recursion(maker: Any) -> None:
    """Thousands of nested spans are a tree like any other."""
    spans = [maker.start("root")]
    for number in range(3000):
        spans.append(maker.start(f"s{number}", spans[-1]))
    for span in reversed(spans):
        maker.end(span)

    assert len(render_plain(build_tree(map(to_record, maker.take()))).splitlines()) == 3001
