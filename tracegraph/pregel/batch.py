"""Many invocations at once."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tracegraph.errors import InvalidInputError

__all__ = ["abatch", "batch"]


def _configs(config: Any, count: int) -> list[Any]:
    if not isinstance(config, (list, tuple)):
        return [config] * count
    if len(config) != count:
        raise InvalidInputError(f"batch() got {count} inputs but {len(config)} configs; give one config, or one per input")
    return list(config)


def _limit(configs: Sequence[Any]) -> int | None:
    return next((c["max_concurrency"] for c in configs if c and c.get("max_concurrency")), None)


def batch(invoke: Callable[..., Any], inputs: Sequence[Any], config: Any, *, return_exceptions: bool, **kwargs: Any) -> list[Any]:
    """Call *invoke* for each input in threads, each in a copy of the caller's Context; return the outputs in order.

    Raises:
        Exception: the first failure in input order, unless ``return_exceptions``.
    """
    configs = _configs(config, len(inputs))
    if not inputs:
        return []

    def one(context: contextvars.Context, given: Any, its_config: Any) -> Any:
        try:
            return context.run(invoke, given, its_config, **kwargs)
        except Exception as error:
            if return_exceptions:
                return error
            raise

    with ThreadPoolExecutor(_limit(configs) or len(inputs)) as pool:
        futures = [pool.submit(one, contextvars.copy_context(), i, c) for i, c in zip(inputs, configs, strict=True)]
        return [future.result() for future in futures]


async def abatch(
    ainvoke: Callable[..., Awaitable[Any]], inputs: Sequence[Any], config: Any, *, return_exceptions: bool, **kwargs: Any
) -> list[Any]:
    """Do what :func:`batch` does, as asyncio tasks."""
    configs = _configs(config, len(inputs))
    limit = _limit(configs)
    gate = asyncio.Semaphore(limit or max(1, len(inputs)))

    async def one(given: Any, its_config: Any) -> Any:
        async with gate:
            return await ainvoke(given, its_config, **kwargs)

    return await asyncio.gather(*(one(i, c) for i, c in zip(inputs, configs, strict=True)), return_exceptions=return_exceptions)
