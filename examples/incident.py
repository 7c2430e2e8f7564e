"""A support desk on a bad day, to try the operating guide's questions on: docs/operating.md.

Tickets are triaged, their orders looked up side by side, a reply is drafted and checked until it will do, a person
approves it, and it is sent. Models and tools are scripted: no network, the same every time. What a ticket is about says what
goes wrong: of order ``slow`` the shop takes long, of ``flaky`` it answers at the third try, of ``gone`` never, of ``hang``
it never answers at all; a ticket that is ``picky`` likes no reply. Read docs/operating.md for the commands.
"""

from __future__ import annotations

import operator
import threading
import time
from collections import Counter
from typing import Annotated, TypedDict

from tracegraph import END, START, RetryPolicy, Send, StateGraph, interrupt
from tracegraph.config import get_config
from tracegraph.messages import AIMessage, UsageMetadata


class Ticket(TypedDict, total=False):
    """What the nodes share."""

    text: str
    orders: list[str]
    is_picky: bool
    found: Annotated[list[str], operator.add]
    draft: str
    rounds: int
    is_good: bool
    is_approved: bool


class Order(TypedDict):
    """What one lookup gets."""

    order: str


class ShopDownError(ConnectionError):
    """The shop's service does not answer."""


_tries: Counter[str] = Counter()


def ask(model: str, question: str, answer: str, tokens: tuple[int, int]) -> str:
    """Ask a scripted model; it reports the call as real models do."""
    messages = [[{"role": "user", "content": question}]]
    (call,) = get_config()["callbacks"].on_chat_model_start({"name": "scripted"}, messages, model=model, provider="openai")
    usage = UsageMetadata(input_tokens=tokens[0], output_tokens=tokens[1], total_tokens=sum(tokens))
    call.on_llm_end(AIMessage(answer, usage_metadata=usage))
    return answer


def search_orders(order: str) -> str:
    """Ask the shop, a tool, and report the call."""
    call = get_config()["callbacks"].on_tool_start({"name": "search_orders"}, order, inputs={"order": order})
    _tries[order] += 1
    if order == "hang":
        threading.Event().wait()
    if order == "slow":
        time.sleep(0.3)
    if order == "gone" or (order == "flaky" and _tries[order] < 3):
        error = ShopDownError(f"no answer about order {order!r}")
        call.on_tool_error(error)
        raise error
    call.on_tool_end(found := f"{order}: sent")
    return found


def triage(ticket: Ticket) -> Ticket:
    """Find the orders that a ticket is about."""
    ask("gpt-4o-mini", f"Which orders? {ticket['text']}", ", ".join(ticket["orders"]), (200, 20))
    return {"rounds": 0}


def fan_out(ticket: Ticket) -> list[Send]:
    """Look every order up at once."""
    return [Send("look_up", {"order": order}) for order in ticket["orders"]]


def look_up(order: Order) -> Ticket:
    """Ask the shop about one order."""
    return {"found": [search_orders(order["order"])]}


def draft(ticket: Ticket) -> Ticket:
    """Write a reply."""
    rounds = ticket["rounds"] + 1
    text = ask("gpt-4o", f"Reply to {ticket['text']} with {sorted(ticket['found'])}", f"Reply {rounds}", (3000, 700))
    return {"draft": text, "rounds": rounds}


def check(ticket: Ticket) -> Ticket:
    """Let another model judge it: the second reply will do."""
    is_good = ticket["rounds"] >= 2 and not ticket.get("is_picky", False)
    ask("gpt-4o-mini", f"Is it good? {ticket['draft']}", "yes" if is_good else "no", (400, 10))
    return {"is_good": is_good}


def approve(ticket: Ticket) -> Ticket:
    """Wait for a person."""
    return {"is_approved": interrupt({"question": "Send it?", "draft": ticket["draft"]}) is True}


def send(ticket: Ticket) -> Ticket:
    """Send the reply by a tool."""
    call = get_config()["callbacks"].on_tool_start({"name": "send_mail"}, ticket["draft"])
    call.on_tool_end("sent")
    return {}


retries = RetryPolicy(max_attempts=3, retry_on=ShopDownError, initial_interval=0.01, jitter=False)
builder = StateGraph(Ticket)
builder.add_node("triage", triage)
builder.add_node("look_up", look_up, input_schema=Order, retry_policy=retries)
builder.add_node("draft", draft)
builder.add_node("check", check)
builder.add_node("approve", approve)
builder.add_node("send", send)
builder.add_edge(START, "triage")
builder.add_conditional_edges("triage", fan_out, ["look_up"])
builder.add_edge("look_up", "draft")
builder.add_edge("draft", "check")
builder.add_conditional_edges("check", lambda ticket: "approve" if ticket["is_good"] else "draft", ["approve", "draft"])
builder.add_conditional_edges("approve", lambda ticket: "send" if ticket["is_approved"] else END, ["send", END])
builder.add_edge("send", END)
graph = builder.compile(name="support")
