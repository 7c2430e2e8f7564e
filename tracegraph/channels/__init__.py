"""Channels: what a state key is made of."""

from tracegraph.channels.any_value import AnyValue
from tracegraph.channels.base import BaseChannel, RuleChannel
from tracegraph.channels.binop import BinaryOperatorAggregate
from tracegraph.channels.delta import DeltaChannel
from tracegraph.channels.ephemeral_value import EphemeralValue
from tracegraph.channels.last_value import LastValue, LastValueAfterFinish
from tracegraph.channels.named_barrier_value import NamedBarrierValue, NamedBarrierValueAfterFinish
from tracegraph.channels.nested import Nested
from tracegraph.channels.topic import Topic
from tracegraph.channels.untracked_value import UntrackedValue

__all__ = [
    "AnyValue",
    "BaseChannel",
    "BinaryOperatorAggregate",
    "DeltaChannel",
    "EphemeralValue",
    "LastValue",
    "LastValueAfterFinish",
    "NamedBarrierValue",
    "NamedBarrierValueAfterFinish",
    "Nested",
    "RuleChannel",
    "Topic",
    "UntrackedValue",
]
