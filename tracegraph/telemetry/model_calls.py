"""What a model was asked for and what it answered, as attributes.

Both are read by duck type: parameters and messages may be ours, LangChain's or a provider's. What is not told
stays absent, never 0; content (messages, tool definitions) is not read here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from opentelemetry.trace import SpanKind
from opentelemetry.util.types import AttributeValue

from tracegraph.events import ModelStarted
from tracegraph.telemetry import semconv
from tracegraph.telemetry.providers import provider_name

__all__ = ["model_answer", "model_named", "model_request", "model_used", "usage_of"]

Attributes = dict[str, AttributeValue]


_MADE_UP: Final = ("lc_run-", "run-")
"""How the ids begin that LangChain gives to messages whose provider gave them none."""


def model_named(event: ModelStarted) -> Attributes:
    """Return operation, provider and model asked for: what names the kind of call, and not the one call."""
    asked, metadata = _asked(event), event.metadata
    attributes: Attributes = {
        semconv.OPERATION_NAME: semconv.CHAT if event.is_chat else semconv.TEXT_COMPLETION,
        semconv.PROVIDER_NAME: provider_name(_text(asked.get("provider"), metadata.get("ls_provider"))),
    }
    if model := _text(asked.get("model"), asked.get("model_name"), metadata.get("ls_model_name")):
        attributes[semconv.REQUEST_MODEL] = model
    return attributes


def model_request(event: ModelStarted) -> tuple[str, SpanKind, Attributes]:
    """Return the name, kind and attributes of a model call's span, as far as the start of the call tells them."""
    asked, metadata = _asked(event), event.metadata
    attributes = model_named(event)
    for name, read, *keys in _REQUEST:
        given = next((value for key in keys if (value := asked.get(key, metadata.get(f"ls_{key}"))) is not None), None)
        if (value := read(given)) is not None:
            attributes[name] = value
    named = str(attributes[semconv.OPERATION_NAME]), str(attributes.get(semconv.REQUEST_MODEL, event.name))
    return " ".join(named), SpanKind.CLIENT, attributes


def _asked(event: ModelStarted) -> Mapping[str, Any]:
    inner = _mapping(event.params.get("invocation_params"))
    return {**event.params, **inner} if inner else event.params


def model_used(response: Any) -> Attributes:
    """Return the model that answered and its token counts, as far as the answer tells them: what is measured of it."""
    return _used(response, _choices(response)[0])


def model_answer(response: Any) -> Attributes:
    """Return id, model, finish reasons and token counts, as far as the answer tells them."""
    choices = _choices(response)
    message = choices[0]
    answer = _used(response, message)
    reasons = [_text(about.get("finish_reason"), about.get("stop_reason")) for about in map(_about, choices)]
    # One for each choice, by position: with one of them missing the rest would stand at the wrong place.
    if all(reasons):
        answer[semconv.RESPONSE_FINISH_REASONS] = tuple(reason for reason in reasons if reason)
    response_id = _text(_about(message).get("id"), getattr(_message(message), "id", None))
    if response_id is not None and not response_id.startswith(_MADE_UP):
        answer[semconv.RESPONSE_ID] = response_id
    return answer


def _used(response: Any, message: Any) -> Attributes:
    about = _about(message)
    used: Attributes = {}
    if model := _text(about.get("model_name"), about.get("model")):
        used[semconv.RESPONSE_MODEL] = model
    used.update(usage_of(message) or _total_usage(response))
    return used


def usage_of(message: Any) -> dict[str, int]:
    """Return the token counts that a message, or one piece of a streamed one, carries.

    >>> from tracegraph.messages import AIMessage
    >>> usage_of(AIMessage("Hi", usage_metadata={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}))
    {'gen_ai.usage.input_tokens': 5, 'gen_ai.usage.output_tokens': 2}
    """
    usage = _mapping(getattr(_message(message), "usage_metadata", None))
    if not usage:
        return {}
    inputs, outputs = _mapping(usage.get("input_token_details")), _mapping(usage.get("output_token_details"))
    return _counts(
        (usage.get("input_tokens"), semconv.USAGE_INPUT_TOKENS),
        (usage.get("output_tokens"), semconv.USAGE_OUTPUT_TOKENS),
        (inputs.get("cache_read"), semconv.USAGE_CACHE_READ_INPUT_TOKENS),
        (inputs.get("cache_creation"), semconv.USAGE_CACHE_WRITE_INPUT_TOKENS),
        (outputs.get("reasoning"), semconv.USAGE_REASONING_OUTPUT_TOKENS),
    )


def _total_usage(response: Any) -> dict[str, int]:
    """Return the counts that a LangChain ``LLMResult`` has beside its messages, for models that take texts."""
    usage = _mapping(_mapping(getattr(response, "llm_output", None)).get("token_usage"))
    return _counts(
        (usage.get("prompt_tokens"), semconv.USAGE_INPUT_TOKENS), (usage.get("completion_tokens"), semconv.USAGE_OUTPUT_TOKENS)
    )


def _counts(*found: tuple[Any, str]) -> dict[str, int]:
    return {name: count for given, name in found if (count := _int(given)) is not None}


def _choices(response: Any) -> Sequence[Any]:
    """Return the answers to one request: *response* itself, or the generations of a LangChain ``LLMResult``."""
    generations = getattr(response, "generations", None)
    if isinstance(generations, (list, tuple)) and generations:
        of_one_prompt = generations[0]
        return (of_one_prompt or [None]) if isinstance(of_one_prompt, (list, tuple)) else generations
    return [response]


def _message(choice: Any) -> Any:
    """Return the message of a LangChain generation, or *choice* if it is one itself."""
    return getattr(choice, "message", choice)


def _about(choice: Any) -> Mapping[str, Any]:
    return _mapping(getattr(_message(choice), "response_metadata", None)) or _mapping(getattr(choice, "generation_info", None))


def _mapping(value: Any) -> Mapping[str, Any]:
    # Nothing is what most pieces of a streamed answer carry, and asking an abstract class is slow.
    return value if value is not None and isinstance(value, Mapping) else {}


def _text(*candidates: Any) -> str | None:
    return next((text for text in candidates if isinstance(text, str) and text), None)


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _double(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _texts(value: Any) -> tuple[str, ...] | None:
    texts = (value,) if isinstance(value, str) else value
    is_list = isinstance(texts, (list, tuple)) and texts and all(isinstance(text, str) for text in texts)
    return tuple(texts) if is_list else None


def _choice_count(value: Any) -> int | None:
    return None if value == 1 else _int(value)


def _true(value: Any) -> bool | None:
    return True if value is True else None


def _output_type(value: Any) -> str | None:
    kind = _mapping(value).get("type")
    return "json" if kind in {"json_object", "json_schema"} else "text" if kind == "text" else None


_REQUEST: Final[tuple[tuple[str, Callable[[Any], AttributeValue | None], *tuple[str, ...]], ...]] = (
    (semconv.REQUEST_TEMPERATURE, _double, "temperature"),
    (semconv.REQUEST_MAX_TOKENS, _int, "max_tokens", "max_completion_tokens", "max_output_tokens"),
    (semconv.REQUEST_TOP_P, _double, "top_p"),
    (semconv.REQUEST_TOP_K, _int, "top_k"),
    (semconv.REQUEST_FREQUENCY_PENALTY, _double, "frequency_penalty"),
    (semconv.REQUEST_PRESENCE_PENALTY, _double, "presence_penalty"),
    (semconv.REQUEST_STOP_SEQUENCES, _texts, "stop", "stop_sequences"),
    (semconv.REQUEST_SEED, _int, "seed"),
    (semconv.REQUEST_CHOICE_COUNT, _choice_count, "n"),
    (semconv.REQUEST_STREAM, _true, "stream"),
    (semconv.OUTPUT_TYPE, _output_type, "response_format"),
)
"""Attribute, how its value is read, and what the parameter is called: by us and providers; LangChain says ``ls_`` before it."""
