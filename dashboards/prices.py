"""What tokens cost: a list of prices as recording rules, and the PromQL that multiplies by it.

``python -m dashboards.prices MODEL ...`` writes the rules for these models, with the prices of the package `genai-prices`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from dashboards.series import Series, label_of, per
from tracegraph.telemetry.semconv import names

__all__ = ["PART", "PRICED", "PRICE", "cost", "price_rules", "unpriced"]

PRICE: Final = "tracegraph:token_price:dollars"
PART: Final = "part"
_MODEL: Final = label_of(names.REQUEST_MODEL)

PRICED: Final = {
    "input": names.METRIC_USAGE_INPUT_TOKENS,
    "output": names.METRIC_USAGE_OUTPUT_TOKENS,
    "cache_read": names.METRIC_USAGE_CACHE_READ_INPUT_TOKENS,
    "cache_write": names.METRIC_USAGE_CACHE_WRITE_INPUT_TOKENS,
}
"""Which tokens each part of a price is for. Input tokens include cached ones, so that the price of those is a difference."""


def cost(parts: Mapping[str, Series], *by: str, window: str = "$__rate_interval") -> str:
    """Return the PromQL for dollars per second, by these attributes; tokens of models that have no price cost nothing.

    >>> cost({"input": Series.of(names.METRIC_USAGE_INPUT_TOKENS)}, window="5m")  # doctest: +NORMALIZE_WHITESPACE
    'sum(rate(gen_ai_client_inference_usage_input_tokens_total[5m])
       * on (gen_ai_request_model) group_left (part) tracegraph:token_price:dollars{part="input"})'
    """
    priced = [
        f'{series.raw(window)} * on ({_MODEL}) group_left ({PART}) {PRICE}{{{PART}="{part}"}}' for part, series in parts.items()
    ]
    return per(" or ".join(priced), tuple(label_of(attribute) for attribute in by))


def unpriced(tokens: Series) -> str:
    """Return the PromQL for the tokens of models that the list of prices has not."""
    return f"{tokens.increase(names.REQUEST_MODEL)} unless on ({_MODEL}) {PRICE}"


def price_rules(prices: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Return Prometheus' rules for prices of a million tokens: input, output, cache_read and cache_write of each model.

    A cached token's price is recorded as what it costs more or less than another input token.

    >>> rules = price_rules({"m": {"input": 2.0, "output": 8.0, "cache_read": 0.5}})
    >>> [(rule["expr"], rule["labels"]["part"]) for rule in rules["groups"][0]["rules"]]
    [('vector(2 / 1e6)', 'input'), ('vector(8 / 1e6)', 'output'), ('vector(-1.5 / 1e6)', 'cache_read')]
    """
    rules = []
    for model, price in prices.items():
        for part in (part for part in PRICED if part in price):
            dollars = price[part] - (price["input"] if part.startswith("cache") else 0)
            rules.append({"record": PRICE, "expr": f"vector({dollars:g} / 1e6)", "labels": {_MODEL: model, PART: part}})
    return {"groups": [{"name": "tracegraph-prices", "interval": "1m", "rules": rules}]}


def _listed(model: str) -> dict[str, float]:
    from genai_prices import Usage, calc_price

    price = calc_price(Usage(input_tokens=1, output_tokens=1), model).model_price
    fields = {"input": "input_mtok", "output": "output_mtok", "cache_read": "cache_read_mtok", "cache_write": "cache_write_mtok"}
    found = {part: getattr(price, field) for part, field in fields.items()}
    # A price in tiers, by the length of the prompt, has no single number; the lowest tier is what most calls pay.
    return {part: float(getattr(value, "base", value)) for part, value in found.items() if value is not None}


def main(models: list[str]) -> None:
    """Write the prices of these models to ``rules/prices.yaml``."""
    from genai_prices import __version__

    head = f"# Dollars for a token. From genai-prices {__version__}, by `python -m dashboards.prices`; yours to edit.\n"
    rules = price_rules({model: _listed(model) for model in models})
    path = Path(__file__).with_name("rules") / "prices.yaml"
    path.write_text(head + yaml.safe_dump(rules, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
