"""Two ways to put a graph into a graph.

A compiled graph can be a node: it reads and writes the state keys that it shares with its parent. Or a
node calls it and translates between two states that share nothing. Either way it is a run of its own
inside the parent's trace::

    tracegraph run examples/subgraphs.py:graph --input '{"path": "README.md"}'
"""

from __future__ import annotations

import operator
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, TypedDict

from tracegraph.graph import END, START, StateGraph


class Text(TypedDict, total=False):
    """State of the graph that reads one document. It shares `text` and `notes` with its parent."""

    text: str
    sentences: list[str]
    """Its own: the parent never sees it."""
    notes: Annotated[list[str], operator.add]


def find_sentences(state: Text) -> Text:
    """Split at full stops, question marks and blank lines."""
    found = re.split(r"(?<=[.?!])\s+|\n\s*\n", state["text"])
    return {"sentences": [" ".join(sentence.split()) for sentence in found if sentence.strip()]}


def note_longest(state: Text) -> Text:
    """Note the longest sentence: the one to look at when a text is hard to read."""
    longest = max(state["sentences"], key=lambda sentence: len(sentence.split()), default="")
    return {"notes": [f"{len(state['sentences'])} sentences, the longest has {len(longest.split())} words"]}


# Without an output schema of its own, it would hand its input's notes back and the parent would add them twice.
class Notes(TypedDict):
    """What the reader hands to its parent."""

    notes: Annotated[list[str], operator.add]


class OnlyText(TypedDict):
    """What the reader takes from its parent."""

    text: str


reader = (
    StateGraph(Text, input_schema=OnlyText, output_schema=Notes)
    .add_node("find_sentences", find_sentences)
    .add_node("note_longest", note_longest)
    .add_edge(START, "find_sentences")
    .add_edge("find_sentences", "note_longest")
    .add_edge("note_longest", END)
    .compile(name="reader")
)


class Words(TypedDict, total=False):
    """State of the graph that counts. It shares no key with its parent."""

    words: list[str]
    most_common: str


def count_words(state: Words) -> Words:
    """Find the most frequent word of more than four letters."""
    counts = Counter(word.lower() for word in state["words"] if len(word) > 4)
    return {"most_common": counts.most_common(1)[0][0] if counts else ""}


counter = (
    StateGraph(Words)
    .add_node("count_words", count_words)
    .add_edge(START, "count_words")
    .add_edge("count_words", END)
    .compile(name="counter")
)


class Document(TypedDict, total=False):
    """State of the parent."""

    path: str
    text: str
    notes: Annotated[list[str], operator.add]


def load(state: Document) -> Document:
    """Read the file."""
    return {"text": Path(state["path"]).read_text(encoding="utf-8")}


def note_common_word(state: Document) -> Document:
    """Call the counter, translating both ways."""
    answer = counter.invoke({"words": re.findall(r"[^\W\d_]+", state["text"])})
    return {"notes": [f"its most common word is {answer['most_common']!r}"]}


builder = StateGraph(Document)
builder.add_node("load", load)
builder.add_node("reader", reader)
builder.add_node("note_common_word", note_common_word)
builder.add_edge(START, "load")
builder.add_edge("load", "reader")
builder.add_edge("load", "note_common_word")
builder.add_edge(["reader", "note_common_word"], END)
graph = builder.compile(name="document-notes")


if __name__ == "__main__":
    result = graph.invoke({"path": sys.argv[1] if len(sys.argv) > 1 else __file__})
    print("\n".join(result["notes"]))
