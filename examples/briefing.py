"""Brief a reader on a text: a summary and its key words, written side by side, and then a headline.

A graph to look at while it runs: two nodes stream tokens at the same time, and a graph inside streams some more.
``terminal_reader.py`` and ``sse_server.py`` show it::

    tracegraph run examples/briefing.py:graph --input '{"path": "README.md"}'

The model is scripted. It says sentences and words of the text, picked by how often their words occur, so that the
example needs no key and no network. It reports what it says as a real one does: through the config's callbacks.
"""

from __future__ import annotations

import asyncio
import operator
import os
import re
from collections import Counter
from pathlib import Path
from typing import Annotated, TypedDict

from tracegraph.config import get_config
from tracegraph.graph import END, START, StateGraph
from tracegraph.messages import AIMessageChunk, HumanMessage

SHIPPED_TEXT = Path(__file__).parent / "data" / "night-shift.txt"


async def think() -> None:
    """Take ``PACE_S`` seconds, 0.03 if not set, over the next word."""
    await asyncio.sleep(float(os.environ.get("PACE_S", "0.03")))


async def say(asked: str, answer: str) -> str:
    """Be the model: stream *answer* word by word, and return it."""
    (call,) = get_config()["callbacks"].on_chat_model_start({"name": "scripted"}, [[HumanMessage(asked)]])
    whole = AIMessageChunk("")
    try:
        for token in re.findall(r"\S+\s*", answer):
            await think()
            chunk = AIMessageChunk(token)
            call.on_llm_new_token(token, chunk=chunk)
            whole = whole + chunk
    except BaseException as error:  # cancelled, when the reader leaves
        call.on_llm_error(error)
        raise
    message = whole.to_message()
    call.on_llm_end(message)
    return message.text


class Text(TypedDict, total=False):
    """What a caller gives: a text, or the file it is in; without both the shipped one is read."""

    text: str
    path: str


class Draft(TypedDict, total=False):
    """State of the graph that finds the headline."""

    text: str
    sentence: str
    brief: Annotated[dict[str, str], operator.or_]


class Brief(TypedDict, total=False):
    """What nodes write, each under its own name."""

    brief: Annotated[dict[str, str], operator.or_]


class Briefing(Text, Brief, total=False):
    """What the nodes share."""


def load(state: Text) -> Text:
    """Read the file, unless the text was given."""
    return {"text": state.get("text") or Path(state.get("path") or SHIPPED_TEXT).read_text("utf-8")}


async def summarize(state: Text) -> Brief:
    """Say the three sentences that have most of the text's frequent words."""
    best = sorted(ranked_sentences(state["text"])[:3])
    return {"brief": {"summary": await say("Summarize this.", " ".join(sentence for _, sentence in best))}}


async def find_key_words(state: Text) -> Brief:
    """Say the words that occur most."""
    words = [word for word, _ in frequencies(state["text"]).most_common(8)]
    return {"brief": {"key words": await say("Which words matter?", ", ".join(words))}}


async def choose(state: Draft) -> Draft:
    """Say the sentence that the headline will be made of."""
    best = ranked_sentences(state["text"])[:1]
    return {"sentence": await say("Which sentence says most?", best[0][1] if best else "")}


async def shorten(state: Draft) -> Draft:
    """Say its first part."""
    short = re.split(r"[,.;:!?]", state["sentence"])[0]
    return {"brief": {"headline": await say("Shorten it to a headline.", short)}}


def frequencies(text: str) -> Counter[str]:
    """Count the words of more than four letters.

    >>> frequencies("Pilots, radio! Radio; the tide.").most_common(1)
    [('radio', 2)]

    """
    return Counter(word.lower() for word in re.findall(r"[^\W\d_]{5,}", text))


def ranked_sentences(text: str) -> list[tuple[int, str]]:
    """Return (position, sentence), the one with the most frequent words first."""
    counts = frequencies(text)
    sentences = [" ".join(part.split()) for part in re.split(r"(?<=[.?!])\s+|\n\s*\n", text) if part.strip()]
    return sorted(enumerate(sentences), key=lambda item: -sum(counts[word] for word in frequencies(item[1])))


headline = (
    StateGraph(Draft, input_schema=Text, output_schema=Brief)
    .add_node("choose", choose)
    .add_node("shorten", shorten)
    .add_edge(START, "choose")
    .add_edge("choose", "shorten")
    .add_edge("shorten", END)
    .compile(name="headline")
)

graph = (
    StateGraph(Briefing, input_schema=Text, output_schema=Brief)
    .add_node("load", load)
    .add_node("summarize", summarize)
    .add_node("find_key_words", find_key_words)
    .add_node("headline", headline)
    .add_edge(START, "load")
    .add_edge("load", "summarize")
    .add_edge("load", "find_key_words")
    .add_edge(["summarize", "find_key_words"], "headline")
    .add_edge("headline", END)
    .compile(name="briefing")
)
