"""Which channel or managed value a field becomes, by its annotation alone."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, Required, TypedDict

import pytest

from tracegraph.channels import AnyValue, BinaryOperatorAggregate, DeltaChannel, EphemeralValue, LastValue, Topic
from tracegraph.constants import MISSING
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph import StateGraph
from tracegraph.graph.schema import read_field
from tracegraph.managed import IsLastStep, RemainingSteps
from tracegraph.managed.is_last_step import IsLastStepManager, RemainingStepsManager


def keep(old: Any, new: Any) -> Any:
    return old


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (int, LastValue),
        (Annotated[int, operator.add], BinaryOperatorAggregate),
        (Annotated[int, "doc", operator.add], BinaryOperatorAggregate),
        (Annotated[int, operator.add, "doc"], LastValue),
        (NotRequired[Annotated[list, operator.add]], BinaryOperatorAggregate),
        (Required[Annotated[list, operator.add]], BinaryOperatorAggregate),
        (Annotated[NotRequired[list], operator.add], BinaryOperatorAggregate),
        (Annotated[int, EphemeralValue, "doc"], EphemeralValue),
        (Annotated[list, "doc", Topic(str, accumulate=True), operator.add], Topic),
        (Annotated[NotRequired[str], AnyValue], AnyValue),
    ],
)
def test_a_field_s_channel(annotation: Any, kind: type) -> None:
    """S2: a reducer counts only as the last metadata item, a channel anywhere."""
    made = read_field("x", annotation)

    assert type(made) is kind
    assert made.key == "x"


def test_a_channel_class_gets_the_bare_type() -> None:
    """Neither Annotated nor NotRequired reaches the channel."""
    assert read_field("x", Annotated[NotRequired[str], AnyValue]).typ is str  # type: ignore[union-attr]


def test_a_delta_channel_is_made_again_with_the_annotated_type() -> None:
    """The annotation decides its empty value, not the default of the object given."""
    made = read_field("x", Annotated[NotRequired[dict], DeltaChannel(keep, snapshot_frequency=7)])

    assert isinstance(made, DeltaChannel)
    assert made.get() == {}
    assert made.snapshot_frequency == 7


@pytest.mark.parametrize("channel", [BinaryOperatorAggregate, DeltaChannel(keep)])
def test_a_channel_that_cannot_be_made_is_named_with_its_field(channel: Any) -> None:
    """A class that needs more than a type, and a delta channel of a type without an empty value."""
    with pytest.raises(GraphDefinitionError, match="field 'x' declares a channel that cannot be made"):
        read_field("x", Annotated[int | None, channel])


def test_a_channel_object_in_two_fields_is_two_channels() -> None:
    """Each knows its own name, so that an error names the right one."""
    shared = Topic(str)

    class Two(TypedDict):
        a: Annotated[list, shared]
        b: Annotated[list, shared]

    Two.__annotations__.update(a=Annotated[list, shared], b=Annotated[list, shared])

    assert {name: made.key for name, made in StateGraph(Two).channels.items()} == {"a": "a", "b": "b"}


def one(old: Any) -> Any: ...
def three(old: Any, new: Any, more: Any = None) -> Any: ...
def keyword(old: Any, new: Any, *, more: Any = None) -> Any: ...


@pytest.mark.parametrize("reducer", [one, three])
def test_a_reducer_takes_two_positional_parameters(reducer: Any) -> None:
    """S3: optional ones count; the signature is in the error."""
    with pytest.raises(GraphDefinitionError, match=r"field 'x' must take exactly two .* its signature is \(old"):
        read_field("x", Annotated[int, reducer])


def test_keyword_only_parameters_of_a_reducer_do_not_count() -> None:
    """S3: they have defaults of their own."""
    assert isinstance(read_field("x", Annotated[int, keyword]), BinaryOperatorAggregate)


def test_a_reducer_without_a_signature_is_an_error() -> None:
    """A builtin such as max tells nothing of its parameters."""
    with pytest.raises(GraphDefinitionError, match="reducer <built-in function max> of field 'x' has no signature"):
        read_field("x", Annotated[int, max])


@pytest.mark.parametrize(
    ("annotation", "manager"),
    [
        (RemainingSteps, RemainingStepsManager),
        (IsLastStep, IsLastStepManager),
        (RemainingSteps | None, RemainingStepsManager),
        (NotRequired[RemainingSteps], RemainingStepsManager),
    ],
)
def test_a_managed_value_is_no_channel(annotation: Any, manager: type) -> None:
    """Also inside Optional and NotRequired."""
    assert read_field("x", annotation) is manager


def test_a_reducer_around_a_managed_value_makes_a_channel() -> None:
    """Only the last metadata item makes a managed value."""
    assert isinstance(read_field("x", Annotated[RemainingSteps, operator.add]), BinaryOperatorAggregate)


@pytest.mark.parametrize(
    ("typ", "empty"),
    [(list, []), (int, 0), (Sequence[int], []), (dict[str, int], {}), (int | None, MISSING)],
)
def test_reducer_channels_start_with_the_empty_value_of_their_type(typ: Any, empty: Any) -> None:
    """S4: they are in the first node's input; a type without an empty value starts empty."""
    made = read_field("x", Annotated[typ, operator.add])

    assert made.initial() == empty  # type: ignore[union-attr]
