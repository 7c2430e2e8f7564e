"""arize-phoenix, an observability backend for models and agents, shows the runs that were made."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.request import urlopen

import pytest
from sent_runs import EXPORTERS, run_all

from tracegraph.telemetry import semconv
from tracegraph_exporters.base import SpanRecord

pytestmark = pytest.mark.timeout(240)

READ_S = 30


def read_back(url: str, expected: set[str]) -> dict[str, Mapping[str, Any]]:
    """Return what its API tells of the expected spans, by id; it stores what it gets some time after it has answered."""
    deadline = time.monotonic() + READ_S
    while True:
        with urlopen(f"{url}/v1/projects/default/spans?limit=1000", timeout=10) as answer:
            found = {span["context"]["span_id"]: span for span in json.load(answer)["data"]}
        if expected <= found.keys():
            return found
        assert time.monotonic() < deadline, f"missing: {expected - found.keys()}"
        time.sleep(0.2)  # another process writes its database


@pytest.mark.parametrize("protocol", ["http", "http gzip"])
def test_the_tree_read_back_is_the_one_that_was_made(phoenix: str, protocol: str) -> None:
    """Ids, parents, names, status, events, and every attribute with its value; what it tells of neither links nor kinds."""
    made = run_all(EXPORTERS[protocol](phoenix))

    read = read_back(phoenix, {span.span_id for span in made})

    for span in made:
        found = read[span.span_id]
        assert told(found) == as_told(span)
        # It adds attributes of its own conventions, made from ours.
        assert {key: value for key, value in found["attributes"].items() if key in span.attributes} == plain(span.attributes)


def test_model_calls_are_known_as_such(phoenix: str) -> None:
    """By the names of the GenAI conventions alone: it says that a span is a model's, which model, and which session."""
    made = run_all(EXPORTERS["http"](phoenix))

    read = read_back(phoenix, {span.span_id for span in made})

    (chat,) = [span for span in made if span.name == "chat m"]
    found = read[chat.span_id]
    assert found["span_kind"] == "LLM"
    assert found["attributes"]["llm.model_name"] == "m"
    assert found["attributes"]["session.id"] == chat.attributes[semconv.CONVERSATION_ID]


def told(span: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "trace": span["context"]["trace_id"],
        "parent": span["parent_id"],
        "name": span["name"],
        "status": span["status_code"].lower(),
        "message": span["status_message"] or None,
        "events": [(event["name"], event["attributes"]) for event in span["events"]],
    }


def as_told(span: SpanRecord) -> dict[str, Any]:
    return {
        "trace": span.trace_id,
        "parent": span.parent_id,
        "name": span.name,
        "status": span.status,
        "message": span.message,
        "events": [(event.name, plain(event.attributes)) for event in span.events],
    }


def plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as JSON has them."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in attributes.items()}
