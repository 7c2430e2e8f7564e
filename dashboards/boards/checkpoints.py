"""Checkpoint health: is the database slow, does it fail, how much is stored."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.boards.common import GRAPH, SERVICE, attribute_in_logs, chosen, find, quantiles
from dashboards.boards.tables import records, traces
from dashboards.grafana import Dashboard, Panel, Query, Row
from dashboards.series import share
from tracegraph.telemetry.semconv import names

__all__ = ["SIZE", "checkpoint_health"]

SIZE = "tracegraph.checkpoint.size"
"""How large a checkpoint is. Panels about it are there once the registry has it."""

_GRAPH, _ERROR = names.WORKFLOW_NAME, names.ERROR_TYPE


def checkpoint_health() -> Dashboard:
    """Return the page about saving."""
    return Dashboard(
        "tracegraph-checkpoints",
        "tracegraph / Checkpoints",
        "Saves by checkpointers that do I/O. Under durability `sync` runs wait for them.",
        (SERVICE, GRAPH),
        (Row("Saves", tuple(_saves())), *_sizes(), _single_saves()),
    )


def _saves() -> Iterator[Panel]:
    saves = chosen(names.METRIC_CHECKPOINT_DURATION)
    failed = saves.where({_ERROR: '!=""'})
    supersteps = chosen(names.METRIC_SUPERSTEP_DURATION)
    yield Panel("Duration", quantiles(saves), unit="s")
    yield Panel("Durations", (Query(saves.buckets(), "{{le}}"),), "heatmap", "s")
    yield Panel("95th percentile, by graph", (Query(saves.quantile(0.95, _GRAPH)),), unit="s")
    yield Panel("How many, by graph", (Query(saves.per_second(_GRAPH)),), unit="ops", is_stacked=True)
    yield Panel("Failed", (Query(failed.per_second(_GRAPH, _ERROR)),), unit="ops", is_stacked=True)
    yield Panel("Share that failed", (Query(share(failed.per_second(), saves.per_second())),), unit="percentunit")
    yield Panel(
        "Time in saves, as a share of supersteps",
        (Query(f"{saves.total(_GRAPH)} / {supersteps.total(_GRAPH)}"),),
        unit="percentunit",
        width=24,
        description="Of supersteps that have a span. Above 1, saving behind the run takes longer than the work.",
    )


def _sizes() -> Iterator[Row]:
    sizes = find(SIZE)
    if sizes is None:
        return
    yield Row(
        "Size",
        (
            Panel("Size of a checkpoint", quantiles(sizes), unit="bytes", width=8),
            Panel("95th percentile, by graph", (Query(sizes.quantile(0.95, _GRAPH)),), unit="bytes", width=8),
            Panel("Written, by graph", (Query(sizes.total(_GRAPH)),), unit="Bps", width=8, is_stacked=True),
        ),
    )


def _single_saves() -> Row:
    span = f'name = "{names.CHECKPOINT_PUT_SPAN}"'
    saved, error = attribute_in_logs(names.CHECKPOINT_SOURCE), attribute_in_logs(_ERROR)
    return Row(
        "Single saves",
        (
            traces("Longer than 100 ms", f"{{ {span} && duration > 100ms }}"),
            traces("Failed", f"{{ {span} && status = error }}"),
            records("Checkpoints that could not be stored", f'{saved}!="" | {error}!=""', width=24),
        ),
    )
