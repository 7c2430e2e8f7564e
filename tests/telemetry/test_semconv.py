"""The names of telemetry: written once, and no invention where the conventions have a word."""

from __future__ import annotations

from importlib.metadata import version

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, process_attributes, session_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import code_attributes, error_attributes, exception_attributes
from opentelemetry.semconv.schemas import Schemas

from tracegraph.telemetry import semconv
from tracegraph.telemetry.semconv import registry
from tracegraph_exporters import base
from tracegraph_exporters.content import CONTENT

CORE_MODULES = (code_attributes, error_attributes, exception_attributes, process_attributes, session_attributes)
NAMES = {key: value for key, value in vars(semconv).items() if key.isupper() and isinstance(value, str)}

AHEAD_OF_THE_INSTALLED_CONVENTIONS = {
    "gen_ai.step.name",  # a proposal
    "openinference.span.kind",  # these are OpenInference's, for its profile
    "graph.node.id",
    "graph.node.name",
    "graph.node.parent_id",
    "gen_ai.workflow.name",
    "gen_ai.response.time_to_first_chunk",
    "gen_ai.request.stream",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",  # released as cache_creation
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.input.messages_ref",  # these four as OpenTelemetry's GenAI utilities have them
    "gen_ai.output.messages_ref",
    "gen_ai.system_instructions_ref",
    "gen_ai.tool.definitions_ref",
    "gen_ai.client.inference.operation.details",  # an event
    "gen_ai.client.operation.exception",  # as well
    "gen_ai.client.operation.time_to_first_chunk",
    "gen_ai.client.operation.time_per_output_chunk",
    "gen_ai.client.inference.operation.input_tokens",
    "gen_ai.client.inference.operation.output_tokens",
    "gen_ai.client.inference.usage.input_tokens",
    "gen_ai.client.inference.usage.output_tokens",
    "gen_ai.client.inference.usage.cache_read.input_tokens",
    "gen_ai.client.inference.usage.cache_write.input_tokens",
    "gen_ai.client.inference.usage.reasoning.output_tokens",
    "gen_ai.execute_tool.duration",
    "gen_ai.invoke_workflow.duration",
    "gen_ai.invoke_workflow.inference_calls",  # proposals, as the next two
    "gen_ai.invoke_workflow.tool_calls",
    "gen_ai.run_step.duration",
    "gen_ai.token.modality",
    "gen_ai.memory.store.id",
    "gen_ai.memory.record.id",
    "gen_ai.memory.record.count",
    "gen_ai.memory.query.text",
    "gen_ai.memory.records",
}

OPENINFERENCE = {"openinference.span.kind", "graph.node.id", "graph.node.name", "graph.node.parent_id"}
"""Only in the profile of that name."""


def test_no_name_is_written_twice() -> None:
    """Two constants of one value would drift apart."""
    values = [value for key, value in NAMES.items() if value not in {semconv.SCOPE_NAME, semconv.SCOPE_VERSION}]

    assert len(values) == len(set(values))


def test_names_are_the_conventions_or_in_our_own_namespace() -> None:
    """No attribute of ours squats on a public namespace."""
    dotted = {value for key, value in NAMES.items() if "." in value and not key.startswith("METRIC_")}
    dotted -= {semconv.SCOPE_VERSION, semconv.SCHEMA_URL}
    ours = {value for value in dotted if value.startswith("tracegraph.")}
    known = {
        value
        for module in (*CORE_MODULES, gen_ai_attributes, gen_ai_metrics)
        for key, value in vars(module).items()
        if key.isupper() and isinstance(value, str)
    }

    assert dotted - ours - known - OPENINFERENCE <= AHEAD_OF_THE_INSTALLED_CONVENTIONS


def test_schema_url_is_a_published_one() -> None:
    """Backends that translate between versions look it up."""
    assert semconv.SCHEMA_URL in {schema.value for schema in Schemas} | {"https://opentelemetry.io/schemas/1.41.1"}


def test_scope_version_is_the_distributions() -> None:
    """Spans say which tracegraph made them."""
    assert version("tracegraph") == semconv.SCOPE_VERSION


def test_exporters_know_the_same_names() -> None:
    """The exporters do not import tracegraph, so the few names they show are written there again; here they are compared."""
    theirs = {
        base.CONVERSATION_ID: semconv.CONVERSATION_ID,
        base.RUN_ID: semconv.RUN_ID,
        base.RUN_STATUS: semconv.RUN_STATUS,
        base.RUN_REASON: semconv.RUN_REASON,
        base.TASK_ID: semconv.TASK_ID,
        base.TASK_REASON: semconv.TASK_REASON,
        base.ABANDONED: semconv.SPAN_ABANDONED,
        base.PROCESS_ID: semconv.PROCESS_ID,
        base.TASK_STATUS: semconv.TASK_STATUS,
        base.CALL_STATUS: semconv.CALL_STATUS,
        base.SUPERSTEP: semconv.SUPERSTEP,
        base.CACHE_HIT: semconv.CACHE_HIT,
        base.ATTEMPT_NUMBER: semconv.ATTEMPT_NUMBER,
        base.TRACE_PART_SPAN: semconv.TRACE_PART_SPAN,
        base.TASK_ATTEMPTS: semconv.TASK_ATTEMPTS,
        base.INPUT_TOKENS: semconv.USAGE_INPUT_TOKENS,
        base.OUTPUT_TOKENS: semconv.USAGE_OUTPUT_TOKENS,
        base.CACHE_READ_TOKENS: semconv.USAGE_CACHE_READ_INPUT_TOKENS,
        base.CACHE_WRITE_TOKENS: semconv.USAGE_CACHE_WRITE_INPUT_TOKENS,
        base.OPERATION_NAME: semconv.OPERATION_NAME,
        base.WORKFLOW_NAME: semconv.WORKFLOW_NAME,
        base.STEP_NAME: semconv.STEP_NAME,
        base.TOOL_NAME: semconv.TOOL_NAME,
        base.REQUEST_MODEL: semconv.REQUEST_MODEL,
        base.RESPONSE_MODEL: semconv.RESPONSE_MODEL,
        base.PROVIDER: semconv.PROVIDER_NAME,
        base.RETRIEVER_NAME: semconv.RETRIEVER_NAME,
        base.ERROR_TYPE: semconv.ERROR_TYPE,
    }

    assert all(ours == name for name, ours in theirs.items())


def test_exporters_know_what_is_content() -> None:
    """What the registry calls content is shown only where it is asked for."""
    ours = {name for name, attribute in registry.ATTRIBUTES.items() if attribute.is_content}

    assert ours
    assert ours <= set(CONTENT)
