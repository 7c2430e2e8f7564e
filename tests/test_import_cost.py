"""What an import loads: the parts that cost a tenth of a second each are left to those who use them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

COSTLY = ("opentelemetry.sdk", "opentelemetry.exporter", "structlog", "rich", "typer", "click", "grpc", "tracegraph_exporters")
"""Up to 230 ms each on the machines this is developed on."""


def loaded_by(statement: str) -> list[str]:
    """Return the modules that a fresh interpreter has loaded after *statement*."""
    code = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    # Isolated from PYTHON* variables and from coverage's start-up hook, which load modules of their own.
    done = subprocess.run([sys.executable, "-E", "-c", code], capture_output=True, text=True, check=True)
    loaded: list[str] = json.loads(done.stdout)
    return loaded


@pytest.mark.parametrize(
    "module", ["tracegraph", "tracegraph.errors", "tracegraph.types", "tracegraph.events", "tracegraph.engine"]
)
def test_import_loads_no_telemetry_and_no_terminal_code(module: str) -> None:
    """Importing the library's vocabulary costs no exporter, no SDK, no logger and no terminal toolkit."""
    loaded = loaded_by(f"import {module}")

    assert [name for name in loaded if name.startswith(COSTLY)] == []


@pytest.mark.parametrize("names", ["StateGraph", "InMemorySaver, Runtime, interrupt"])
def test_building_a_graph_loads_no_sdk_and_no_exporter(names: str) -> None:
    """Whoever builds graphs without setting up telemetry never loads the OpenTelemetry SDK."""
    loaded = loaded_by(f"from tracegraph import {names}")

    assert [name for name in loaded if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter", "grpc", "typer"))] == []


def test_import_loads_only_what_was_asked_for() -> None:
    """`import tracegraph` does not load the graph builder, which `tracegraph.StateGraph` then does."""
    assert "tracegraph.graph" not in loaded_by("import tracegraph")
    assert "tracegraph.graph" in loaded_by("import tracegraph; tracegraph.StateGraph")
