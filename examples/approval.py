"""Triage a log file, and ask a person before the report is written.

The nodes are those of ``log_triage.py``, with a question in between. What was read is kept in the checkpoint database
while the run waits, so the answer may come days later and from another process::

    tracegraph run examples/approval.py:graph --thread t-1 --input '{"path": "build.log", "report_path": "report.md"}'
    tracegraph state t-1
    tracegraph resume examples/approval.py:graph t-1 --value true

Any answer but ``true`` leaves the report unwritten. ``python examples/approval.py build.log report.md`` asks on the terminal.
"""

from __future__ import annotations

import sys

from log_triage import CODECS, Answer, Piece, Question, Triage, read, scatter, split, summarize

from tracegraph import END, START, Command, InMemorySaver, RetryPolicy, StateGraph, interrupt
from tracegraph.config import RunnableConfig


class Reviewed(Triage, total=False):
    """What the nodes share, and what the person said."""

    is_approved: bool


class ReviewedAnswer(Answer):
    """What a caller gets; without approval there is no report."""

    is_approved: bool


def review(state: Reviewed) -> Reviewed:
    """Show what was found, and wait until somebody has looked at it."""
    counts = {"error": 0, "warning": 0, "other": 0}
    for cluster in state.get("clusters", {}).values():
        counts[cluster["level"]] += cluster["count"]
    answer = interrupt(
        {
            "question": f"Write the report on {state['path']}?",
            "to": state.get("report_path"),
            "error_lines": counts["error"],
            "warning_lines": counts["warning"],
        }
    )
    return {"is_approved": answer is True}


def if_approved(state: Reviewed) -> str:
    """Write the report, or end without it."""
    return "summarize" if state["is_approved"] else END


builder = StateGraph(Reviewed, input_schema=Question, output_schema=ReviewedAnswer)
builder.add_node("split", split)
builder.add_node(
    "read",
    read,
    input_schema=Piece,
    retry_policy=RetryPolicy(max_attempts=len(CODECS), retry_on=UnicodeDecodeError, initial_interval=0.01, jitter=False),
)
builder.add_node("review", review)
builder.add_node("summarize", summarize)
builder.add_edge(START, "split")
# An empty log has no pieces to read; a person is asked all the same.
builder.add_conditional_edges("split", scatter, {"read": "read", "summarize": "review"})
builder.add_edge("read", "review")
builder.add_conditional_edges("review", if_approved, ["summarize", END])
builder.add_edge("summarize", END)
graph = builder.compile(name="log-approval")


if __name__ == "__main__":
    app = builder.compile(name="log-approval", checkpointer=InMemorySaver())
    thread: RunnableConfig = {"configurable": {"thread_id": "terminal"}}
    question: Question = {}
    if len(sys.argv) > 1:
        question["path"] = sys.argv[1]
    if len(sys.argv) > 2:
        question["report_path"] = sys.argv[2]
    paused = app.invoke(question, thread)
    asked = paused["__interrupt__"][0].value
    reply = input(f"{asked['question']} {asked['error_lines']} lines are errors, {asked['warning_lines']} warnings. [y/N] ")
    print(app.invoke(Command(resume=reply.strip().lower() == "y"), thread).get("report", "no report was written"))
