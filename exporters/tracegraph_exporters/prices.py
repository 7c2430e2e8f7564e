"""What model calls cost, in US dollars, by the price lists of ``genai-prices`` (the extra ``prices``)."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple

__all__ = ["Bill", "Rate", "has_prices", "rate_of"]

_DAY_NS: Final = 86_400_000_000_000
_NAMES: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")

Tokens = tuple[int, int, int, int]
"""Input (with what was read from, or written to, a cache), output, cache read, cache write."""


class Rate(NamedTuple):
    """What a call is paid by: calls of one rate may be paid together."""

    provider: str | None
    model: str
    day: int
    tier: int
    """Of how many thresholds of the price list the call is above."""


@lru_cache(maxsize=1)
def has_prices() -> bool:
    """Say whether price lists are installed."""
    try:
        import genai_prices  # noqa: F401
    except ImportError:
        return False
    return True


def rate_of(provider: str | None, model: str, at_ns: int, input_tokens: int) -> Rate:
    """Return the rate of a call; prices change from day to day, and for some models with the size of the request."""
    day = at_ns // _DAY_NS
    return Rate(provider, model, day, sum(input_tokens > start for start in _thresholds(provider, model, day)))


class Bill:
    """Sums of tokens, by the rate they are paid at. A price is looked up once for each rate: that takes 0.1 ms."""

    def __init__(self) -> None:
        self._sums: dict[Rate, list[int]] = {}

    def add(self, rate: Rate, tokens: Tokens) -> None:
        """Add a call."""
        found = self._sums.get(rate)
        if found is None:
            found = self._sums[rate] = [0, 0, 0, 0, 0]
        # Written out: a store of a million spans comes here a million times.
        found[0] += 1
        found[1] += tokens[0]
        found[2] += tokens[1]
        found[3] += tokens[2]
        found[4] += tokens[3]

    def tokens(self) -> Tokens:
        """Return the sums of all."""
        sums = [sum(column) for column in zip(*self._sums.values(), strict=True)] or [0, 0, 0, 0, 0]
        return sums[1], sums[2], sums[3], sums[4]

    def total(self) -> float | None:
        """Return what all calls cost; None if the price of none of them is known."""
        prices = [price for rate, (calls, *tokens) in self._sums.items() if (price := _price(rate, calls, tokens)) is not None]
        return float(sum(prices)) if prices else None

    def unpriced(self) -> int:
        """Return how many calls were of models that no list names."""
        return sum(found[0] for rate, found in self._sums.items() if _price(rate, found[0], found[1:]) is None)


def _price(rate: Rate, calls: int, tokens: list[int]) -> Decimal | None:
    if not has_prices():
        return None
    # The mean call is in the tier that all of them are in; their sum would be in a dearer one.
    found = _calculated(rate.provider, rate.model, rate.day, [Decimal(count) / calls for count in tokens])
    return None if found is None else found.total_price * calls


@lru_cache(maxsize=10_000)
def _thresholds(provider: str | None, model: str, day: int) -> tuple[int, ...]:
    if not has_prices():
        return ()
    from genai_prices.types import TieredPrices

    found = _calculated(provider, model, day, [Decimal(1)] * 2)
    prices = () if found is None else vars(found.model_price).values()
    tiers = {tier.start for price in prices if isinstance(price, TieredPrices) for tier in price.tiers}
    return tuple(sorted(tiers))


def _calculated(provider: str | None, model: str, day: int, tokens: list[Decimal]) -> Any:
    from genai_prices import Usage, calc_price

    usage = Usage(**{name: count for name, count in zip(_NAMES, tokens, strict=False) if count})
    at = datetime.fromtimestamp(day * 86_400, UTC)
    # A name of ours that the lists do not have must not hide a model that they have.
    for candidate in (provider, None) if provider else (None,):
        try:
            return calc_price(usage, model, provider_id=candidate, genai_request_timestamp=at)
        except (LookupError, ValueError):
            continue
    return None
