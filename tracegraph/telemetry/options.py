"""What telemetry says beyond the default, and in which version of the conventions. Loads no OpenTelemetry.

``setup()`` fills the options and the observers read them when a root run starts, so a run keeps those it began with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from tracegraph.errors import InvalidInputError

__all__ = [
    "DEFAULT_OPTIONS",
    "ModelMetrics",
    "ModelSpans",
    "Profile",
    "Semconv",
    "TelemetryOptions",
    "current_options",
    "use_options",
]

Profile: TypeAlias = Literal["none", "openinference"]
Semconv: TypeAlias = Literal["latest", "1.41"]
ModelSpans: TypeAlias = Literal["always", "never"]
ModelMetrics: TypeAlias = Literal["with_spans", "always", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryOptions:
    """What few applications ask of :func:`tracegraph.telemetry.setup`.

    Attributes:
        profile: ``openinference`` adds the attributes that Arize Phoenix draws its views from.
        semconv: the version of the GenAI conventions whose names are used: ``1.41``, the last released one,
            or ``latest``, what has been agreed on since.
        model_spans: ``never`` leaves out the spans of model calls, where an instrumentation of the provider makes them.
        span_budget: how many spans a trace may have. A larger run goes on in further traces, each linked to the run's span; of
            spans that nodes make themselves nothing is known here, so they do not count.
        model_metrics: whether model calls are measured: as long as their spans are made here, or in any case, or not at all.

    Raises:
        InvalidInputError: an option has a value that it cannot have.

    >>> TelemetryOptions(semconv="1.41")
    TelemetryOptions(profile='none', semconv='1.41', model_spans='always', model_metrics='with_spans', span_budget=5000)
    >>> TelemetryOptions(semconv="1.36")
    Traceback (most recent call last):
    tracegraph.errors.InvalidInputError: [TG102] semconv='1.36' is no choice for telemetry; known: 'latest', '1.41'
    """

    profile: Profile = "none"
    semconv: Semconv = "latest"
    model_spans: ModelSpans = "always"
    model_metrics: ModelMetrics = "with_spans"
    span_budget: int = 5_000

    @property
    def measures_models(self) -> bool:
        """Whether model calls are measured here: an instrumentation that makes their spans mostly measures them too.

        >>> TelemetryOptions(model_spans="never").measures_models
        False
        """
        return self.model_spans == "always" if self.model_metrics == "with_spans" else self.model_metrics == "always"

    def __post_init__(self) -> None:
        if self.span_budget < _LEAST_BUDGET:
            raise InvalidInputError(
                f"span_budget={self.span_budget!r} is too small; a trace has room for {_LEAST_BUDGET} spans at least"
            )
        for name, known in _CHOICES.items():
            if (value := getattr(self, name)) not in known:
                raise InvalidInputError(f"{name}={value!r} is no choice for telemetry; known: {', '.join(map(repr, known))}")


_LEAST_BUDGET: Final = 20

_CHOICES: Final = {
    "profile": get_args(Profile),
    "semconv": get_args(Semconv),
    "model_spans": get_args(ModelSpans),
    "model_metrics": get_args(ModelMetrics),
}

DEFAULT_OPTIONS: Final = TelemetryOptions()


class _Current:
    options = DEFAULT_OPTIONS


def current_options() -> TelemetryOptions:
    """Return the options that a run which starts now is observed with."""
    return _Current.options


def use_options(options: TelemetryOptions) -> None:
    """Observe the runs that start from now on with *options*."""
    _Current.options = options
