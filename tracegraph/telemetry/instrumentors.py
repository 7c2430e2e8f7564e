"""Are model calls traced twice, by us and by an instrumentation of the provider's library?"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["warn_if_doubled"]

_BASE_MODULE: Final = "opentelemetry.instrumentation.instrumentor"
_PREFIXES: Final = ("opentelemetry.instrumentation.", "openinference.instrumentation.")
_MODELS: Final = frozenset(
    {
        *("anthropic", "bedrock", "cohere", "genai", "google_genai", "google_generativeai", "groq", "langchain", "litellm"),
        *("mistralai", "ollama", "openai", "openai_v2", "together", "vertexai"),
    }
)
"""What instrumentations that make spans of model calls are called, behind one of the prefixes."""

_log = logging.getLogger("tracegraph.telemetry")


class _Warned:
    has_been = False


def warn_if_doubled() -> None:
    """Warn, once in a process, if an instrumentation is active that makes spans of model calls as well."""
    if _Warned.has_been or _BASE_MODULE not in sys.modules:
        return
    names = sorted({type(active).__module__ for active in _active(sys.modules[_BASE_MODULE])})
    if names:
        _Warned.has_been = True
        _log.warning(
            "model calls are traced twice: as tracegraph's `chat` spans, and by %s; keep one of them: "
            'setup(options=TelemetryOptions(model_spans="never")) leaves ours out',
            ", ".join(names),
        )


def _active(module: Any) -> Iterator[Any]:
    """Yield the instrumentors of models that have been switched on; each class has at most one."""
    classes = [module.BaseInstrumentor]
    for cls in classes:
        classes.extend(cls.__subclasses__())
        made = cls.__dict__.get("_instance")
        if made is not None and getattr(made, "is_instrumented_by_opentelemetry", False) and _traces_models(cls.__module__):
            yield made


def _traces_models(module: str) -> bool:
    """Say whether an instrumentation in *module* makes spans of model calls.

    >>> [_traces_models(name) for name in ("openinference.instrumentation.openai", "opentelemetry.instrumentation.httpx")]
    [True, False]
    """
    return any(module.startswith(prefix) and module[len(prefix) :].partition(".")[0] in _MODELS for prefix in _PREFIXES)
