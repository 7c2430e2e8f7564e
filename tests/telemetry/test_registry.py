"""The registry of all that telemetry may say: complete, consistent, and the same as the page made from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracegraph.telemetry import semconv
from tracegraph.telemetry.semconv.model import ANY_PARENT
from tracegraph.telemetry.semconv.page import telemetry_page
from tracegraph.telemetry.semconv.registry import ATTRIBUTES, EVENTS, METRICS, SPANS, span_type_of

PAGE = Path(__file__).parents[2] / "docs" / "telemetry.md"
SCOPE = {semconv.SCOPE_NAME, semconv.SCOPE_VERSION, semconv.SCHEMA_URL}
NAMES = {value for key, value in vars(semconv).items() if key.isupper() and isinstance(value, str)} - SCOPE - {semconv.VERSION}
PARTS = {**SPANS, **EVENTS, **METRICS}


def test_the_page_is_what_the_registry_says() -> None:
    """`python -m tracegraph.telemetry.semconv` was run after the last change."""
    assert PAGE.read_text(encoding="utf-8") == telemetry_page()


def test_every_name_is_registered_and_nothing_else_is() -> None:
    """A name without a meaning cannot be added, nor a meaning without a name."""
    assert {*ATTRIBUTES, *SPANS, *EVENTS, *METRICS} == NAMES


@pytest.mark.parametrize("name", PARTS)
def test_what_a_part_carries_is_registered_once(name: str) -> None:
    """No attribute without a type, none twice on one thing, and a condition wherever there is one."""
    part = PARTS[name]
    uses = (*part.attributes, *getattr(part, "in_logs_too", ()))

    assert {use.attribute for use in uses} <= ATTRIBUTES.keys()
    assert len({use.attribute for use in uses}) == len(uses)
    assert {use.attribute for use in uses if bool(use.condition) != (use.level == "conditionally required")} == set()


@pytest.mark.parametrize("name", SPANS)
def test_spans_fit_each_other(name: str) -> None:
    """Parents, events and links of a span are registered, and so are the values by which it fails."""
    span = SPANS[name]

    assert set(span.parents) <= {*SPANS, ANY_PARENT}
    assert set(span.events) <= {event.name for event in EVENTS.values() if event.on_spans}
    assert set(span.links) <= set(ATTRIBUTES[semconv.LINK_KIND].values)
    assert set(span.failures) <= set(ATTRIBUTES[span.status].values if span.status else ())
    assert span_type_of(span.name) is span


def test_content_is_always_opt_in() -> None:
    """What users and models said is on nothing unless somebody asked for it."""
    levels = {use.level for part in PARTS.values() for use in part.attributes if ATTRIBUTES[use.attribute].is_content}

    assert levels == {"opt-in"}


def test_token_counts_stand_on_model_calls_only() -> None:
    """A naive sum over a trace counts each token once: containers carry no totals under the same name."""
    carriers = {name for name, span in SPANS.items() if any("gen_ai.usage" in use.attribute for use in span.attributes)}

    assert carriers == {"chat", "text_completion"}


def test_metrics_carry_nothing_that_grows() -> None:
    """Ids of threads, runs, checkpoints and tasks would make a time series each."""
    carried = {use.attribute for metric in METRICS.values() for use in metric.attributes}

    assert {name for name in carried if name.endswith((".id", "_id")) or name == semconv.TASK_PATH} == set()


def test_a_description_is_a_sentence() -> None:
    """The page is read by people."""
    described = {name: part.description for name, part in {**ATTRIBUTES, **PARTS}.items()}

    assert [name for name, text in described.items() if not text.endswith(".") or text[0].islower()] == []


def test_units_of_metrics_are_those_of_the_conventions() -> None:
    """A duration in seconds, tokens in `{token}`."""
    assert {METRICS[name].unit for name in METRICS if name.endswith("duration") or ".time_" in name} == {"s"}
    assert {METRICS[name].unit for name in METRICS if name.endswith("tokens")} == {"{token}"}
