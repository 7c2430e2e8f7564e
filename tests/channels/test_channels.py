"""What each channel does with a superstep's writes, in object form."""

from __future__ import annotations

import collections.abc as abc
import operator
from typing import Annotated, Any, NotRequired, Required

import pytest

from tracegraph.channels import (
    AnyValue,
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
    UntrackedValue,
)
from tracegraph.channels.delta import DeltaSnapshot
from tracegraph.constants import MISSING
from tracegraph.errors import EmptyChannelError, ErrorCode, InvalidUpdateError
from tracegraph.types import Overwrite

OVERWRITES = [Overwrite, lambda v: {"__overwrite__": v}, lambda v: {"type": "__overwrite__", "value": v}]


def joined(left: list[Any], batch: list[Any]) -> list[Any]:
    return [*left, *batch]


def test_last_value_keeps_the_only_write() -> None:
    """An empty batch changes nothing, one write is stored, None included."""
    channel = LastValue(int, "total")

    assert (channel.update([]), channel.is_available()) == (False, False)
    assert (channel.update([3]), channel.get()) == (True, 3)
    assert (channel.update([None]), channel.get(), channel.is_available()) == (True, None, True)
    assert (channel.consume(), channel.finish()) == (False, False)


@pytest.mark.parametrize("channel", [LastValue(int, "total"), EphemeralValue(int), UntrackedValue(int)])
def test_second_write_in_a_step_is_an_error_that_names_the_channel(channel: Any) -> None:
    """A channel for one writer refuses two and keeps its value."""
    channel.key = "total"
    channel.update([1])

    with pytest.raises(InvalidUpdateError, match=r"\[TG201\] channel 'total' takes one write per step, but got 2") as caught:
        channel.update([2, 3])

    assert caught.value.channel == "total"
    assert caught.value.error_code is ErrorCode.INVALID_CONCURRENT_GRAPH_UPDATE
    assert channel.get() == 1


def test_empty_channel_says_its_name() -> None:
    """Reading a channel without a value is an EmptyChannelError."""
    with pytest.raises(EmptyChannelError, match=r"\[TG204\] channel 'total' holds no value"):
        LastValue(int, "total").get()


def test_ephemeral_value_lives_until_the_next_step() -> None:
    """A step that does not write it clears it, which is a change once."""
    channel = EphemeralValue(int, guard=False)

    assert (channel.update([1, 2]), channel.get(), channel.checkpoint()) == (True, 2, 2)
    assert (channel.update([]), channel.is_available(), channel.update([])) == (True, False, False)


def test_any_value_takes_the_last_of_many_and_clears() -> None:
    """Several writes are no error; a step without a write empties it."""
    channel = AnyValue(int)

    assert (channel.update([1, 2, 3]), channel.get()) == (True, 3)
    assert (channel.update([]), channel.is_available(), channel.update([])) == (True, False, False)


def test_topic_holds_the_last_steps_items() -> None:
    """Writes that are lists are flattened one level, and a step without writes drops everything, once."""
    topic = Topic(str)

    assert (topic.update(["a", ["b", ["c"]]]), topic.get()) == (True, ["a", "b", ["c"]])
    assert (topic.update(["d"]), topic.get()) == (True, ["d"])
    assert (topic.update([]), topic.is_available(), topic.checkpoint(), topic.update([])) == (True, False, [], False)
    with pytest.raises(EmptyChannelError):
        topic.get()


def test_topic_of_empty_lists_changes_only_if_something_is_dropped() -> None:
    """Writing `[]` adds nothing, so only the loss of older items counts."""
    topic = Topic(str)

    assert topic.update([[]]) is False
    topic.update(["a"])
    assert (topic.update([[]]), topic.is_available()) == (True, False)


def test_accumulating_topic_keeps_everything() -> None:
    """Steps without writes change nothing, others add."""
    topic = Topic(str, accumulate=True)

    assert (topic.update(["a"]), topic.update([]), topic.update([[]]), topic.update([["b"]])) == (True, False, False, True)
    assert topic.get() == ["a", "b"]


def test_topic_hands_out_a_copy() -> None:
    """Changing the list that get() or checkpoint() returned does not change the topic."""
    topic = Topic(str)
    topic.update(["a"])

    topic.get().append("b")  # type: ignore[attr-defined]
    topic.checkpoint().append("c")

    assert topic.get() == ["a"]


def test_topic_reads_the_pairs_of_old_checkpoints() -> None:
    """A saved tuple's second item is the list."""
    assert Topic(str).from_checkpoint((set(), ["a"])).get() == ["a"]
    assert Topic(str).from_checkpoint(["b"]).get() == ["b"]
    assert not Topic(str).from_checkpoint([]).is_available()
    assert not Topic(str).from_checkpoint(MISSING).is_available()


def test_barrier_opens_when_all_names_were_seen_and_starts_anew_when_used() -> None:
    """A repeated name is no change; consuming an open barrier empties it, consuming a closed one does nothing."""
    join = NamedBarrierValue(str, {"a", "b"})

    assert (join.update(["a"]), join.update(["a"]), join.is_available(), join.consume()) == (True, False, False, False)
    assert join.checkpoint() == {"a"}
    assert (join.update(["b"]), join.get(), join.is_available()) == (True, None, True)
    assert (join.consume(), join.is_available(), join.checkpoint(), join.consume()) == (True, False, set(), False)
    assert join.finish() is False


@pytest.mark.parametrize("kind", [NamedBarrierValue, NamedBarrierValueAfterFinish])
def test_barrier_refuses_a_name_it_does_not_wait_for(kind: Any) -> None:
    """The error says for whom the join waits, and the names seen stay."""
    join = kind(str, {"a", "b"})
    join.key = "join:a+b:c"
    join.update(["a"])

    with pytest.raises(InvalidUpdateError, match=r"join 'join:a\+b:c' waits for 'a', 'b', but something else was written to it"):
        join.update(["b", "x"])

    assert not join.is_available()


def test_barrier_after_finish_opens_only_at_the_end() -> None:
    """Complete is not enough: finish() opens it, once, and consume() starts the next round."""
    join = NamedBarrierValueAfterFinish(str, {"a"})

    assert (join.finish(), join.update(["a"]), join.update(["a"]), join.is_available()) == (False, True, False, False)
    assert (join.consume(), join.checkpoint()) == (False, ({"a"}, False))
    assert (join.finish(), join.finish(), join.is_available(), join.checkpoint()) == (True, False, True, ({"a"}, True))
    assert (join.consume(), join.is_available(), join.checkpoint()) == (True, False, (set(), False))


def test_last_value_after_finish_shows_up_at_the_end() -> None:
    """Many writes are no error, finish() shows the last one, consume() clears it, and a new write hides it again."""
    channel = LastValueAfterFinish(int)

    assert (channel.finish(), channel.checkpoint(), channel.update([1, 2])) == (False, MISSING, True)
    assert (channel.is_available(), channel.consume(), channel.checkpoint()) == (False, False, (2, False))
    assert (channel.finish(), channel.finish(), channel.get(), channel.checkpoint()) == (True, False, 2, (2, True))
    assert (channel.update([3]), channel.is_available(), channel.finish(), channel.get()) == (True, False, True, 3)
    assert (channel.update([]), channel.consume(), channel.is_available(), channel.consume()) == (False, True, False, False)


@pytest.mark.parametrize(
    ("channel", "saved"),
    [
        (LastValueAfterFinish(int), [2, True]),
        (NamedBarrierValue(str, {"a"}), ["a"]),
        (NamedBarrierValueAfterFinish(str, {"a"}), [["a"], True]),
    ],
)
def test_saved_forms_survive_a_serialiser_that_knows_only_lists(channel: Any, saved: Any) -> None:
    """Tuples and sets that came back as lists restore the same channel."""
    assert channel.from_checkpoint(saved).is_available()
    assert not channel.from_checkpoint(MISSING).is_available()


def test_untracked_value_stays_for_the_run_and_is_never_saved() -> None:
    """It survives steps that do not write it; checkpoints know nothing of it."""
    channel = UntrackedValue(object, guard=False)

    assert (channel.update([1, 2]), channel.update([]), channel.get()) == (True, False, 2)
    assert channel.checkpoint() is MISSING
    assert not channel.from_checkpoint(2).is_available()
    assert (channel.is_saved, LastValue.is_saved) == (False, True)


def test_reducer_folds_in_order_from_the_empty_value() -> None:
    """A type that can be called starts with its empty value."""
    channel = BinaryOperatorAggregate(list, operator.add)

    assert channel.get() == []
    assert (channel.update([]), channel.update([[1], [2]]), channel.get()) == (False, True, [1, 2])


def test_reducer_of_a_type_without_empty_value_takes_the_first_write_as_it_is() -> None:
    """The operator is not called with a value that does not exist."""
    channel = BinaryOperatorAggregate(int | None, lambda left, right: left - right)

    assert not channel.is_available()
    assert channel.checkpoint() is MISSING
    assert (channel.update([10, 3]), channel.get()) == (True, 7)


@pytest.mark.parametrize("encoded", OVERWRITES)
@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("typ", [list, list | None])
def test_overwrite_wins_wherever_it_stands(encoded: Any, position: int, typ: Any) -> None:
    """Writes before and after it in the same step are dropped, also on a channel without a value."""
    channel = BinaryOperatorAggregate(typ, operator.add)
    batch: list[Any] = [[1], [2]]
    batch.insert(position, encoded([9]))

    assert (channel.update(batch), channel.get()) == (True, [9])
    assert (channel.update([[3]]), channel.get()) == (True, [9, 3])


@pytest.mark.parametrize("channel", [BinaryOperatorAggregate(list, operator.add), DeltaChannel(joined)])
def test_two_overwrites_in_a_step_are_an_error(channel: Any) -> None:
    """Neither wins, and the value stays."""
    channel.key = "log"

    with pytest.raises(InvalidUpdateError, match="channel 'log' takes one Overwrite per step") as caught:
        channel.update([Overwrite([1]), [2], Overwrite([3])])

    assert caught.value.channel == "log"
    assert channel.get() == []


def test_dicts_that_are_no_overwrite_are_folded() -> None:
    """A dict with more keys, or another type, is a value like any other."""
    channel = BinaryOperatorAggregate(dict, operator.or_)

    channel.update([{"__overwrite__": 1, "more": 2}, {"type": "text", "value": 3}])

    assert channel.get() == {"__overwrite__": 1, "more": 2, "type": "text", "value": 3}


@pytest.mark.parametrize("saved", [[1, 2], DeltaSnapshot([1, 2])])
@pytest.mark.parametrize("channel", [BinaryOperatorAggregate(list, operator.add), DeltaChannel(joined)])
def test_reducer_and_delta_channel_read_each_others_checkpoints(channel: Any, saved: Any) -> None:
    """A field may change from one to the other on an existing thread."""
    assert channel.from_checkpoint(saved).get() == [1, 2]


@pytest.mark.parametrize(
    ("typ", "empty"),
    [
        (abc.Sequence[int], []),
        (abc.MutableSequence[int], []),
        (abc.Set[int], set()),
        (abc.MutableSet[int], set()),
        (abc.Mapping[str, int], {}),
        (abc.MutableMapping[str, int], {}),
        (Annotated[list[int], "doc"], []),
        (Required[Annotated[dict[str, int], "doc"]], {}),
        (NotRequired[str], ""),
        (float, 0.0),
    ],
)
def test_initial_value_is_the_types_own(typ: Any, empty: Any) -> None:
    """Abstract collections start as their concrete kin, wrappers are looked through."""
    channel = BinaryOperatorAggregate(typ, operator.add)

    assert (channel.get(), type(channel.get())) == (empty, type(empty))
    assert channel.from_checkpoint(MISSING).get() == empty


def test_each_channel_starts_with_an_empty_value_of_its_own() -> None:
    """Two runs never share the list they start with."""
    rule = BinaryOperatorAggregate(list, operator.add)

    assert rule.initial() is not rule.initial()
    assert DeltaChannel(joined).initial() is not DeltaChannel(joined).initial()


def test_delta_channel_folds_a_step_at_once() -> None:
    """The reducer is called once per step, with all of its writes."""
    calls: list[list[Any]] = []

    def reducer(state: list[Any], batch: list[Any]) -> list[Any]:
        calls.append(batch)
        return [*state, *batch]

    channel = DeltaChannel(reducer, list)

    assert (channel.update([]), channel.update([1, 2]), channel.get(), calls) == (False, True, [1, 2], [[1, 2]])


@pytest.mark.parametrize("encoded", OVERWRITES)
def test_overwrite_of_a_delta_channel_stands_alone(encoded: Any) -> None:
    """All other writes are dropped; the stored value is not the object given; None starts anew."""
    channel, given = DeltaChannel(joined), [7]

    assert (channel.update([1, encoded(given), 2]), channel.get()) == (True, [7])
    assert channel.get() is not given
    assert (channel.update([encoded(None)]), channel.get()) == (True, [])


@pytest.mark.parametrize("saved", [None, MISSING])
def test_delta_channel_without_a_saved_value_starts_empty_and_available(saved: Any) -> None:
    """Both ways of saying nothing give the type's empty value."""
    assert DeltaChannel(joined).from_checkpoint(saved).get() == []


def test_delta_channel_saves_its_whole_value() -> None:
    """As long as no saver stores increments, a checkpoint loses nothing."""
    channel = DeltaChannel(joined)
    channel.update([1])

    assert channel.checkpoint() == [1]


def test_replay_starts_at_the_last_overwrite() -> None:
    """Earlier writes do not matter, later ones are folded in one call."""
    batches: list[tuple[Any, list[Any]]] = []

    def reducer(state: list[Any], batch: list[Any]) -> list[Any]:
        batches.append((state, batch))
        return [*state, *batch]

    channel = DeltaChannel(reducer)
    channel.replay_writes([("t1", "log", "a"), ("t2", "log", Overwrite(["x"])), ("t3", "log", "b"), ("t4", "log", "c")])

    assert (channel.get(), batches) == (["x", "b", "c"], [(["x"], ["b", "c"])])
    channel.replay_writes([("t5", "log", Overwrite(None))])
    assert channel.get() == []


@pytest.mark.parametrize("frequency", [0, -1])
def test_snapshot_frequency_is_positive(frequency: int) -> None:
    """A cadence of nothing is refused where it is written."""
    with pytest.raises(ValueError, match="snapshot_frequency counts updates and must be positive"):
        DeltaChannel(joined, snapshot_frequency=frequency)


def test_delta_channel_needs_a_type_with_an_empty_value() -> None:
    """Without a value to start from there is nothing to fold into."""
    with pytest.raises(TypeError, match="cannot be called without arguments"):
        DeltaChannel(joined, int | None)


def test_schema_types_of_channels() -> None:
    """What is read and what is written may differ."""
    topic = Topic(int)

    assert (LastValue(int).ValueType, LastValue(int).UpdateType) == (int, int)
    assert (topic.ValueType, topic.UpdateType) == (abc.Sequence[int], int | list[int])
