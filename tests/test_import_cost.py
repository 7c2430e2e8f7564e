"""What an import loads: the parts that cost a tenth of a second each are left to those who use them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

COSTLY = ("opentelemetry.sdk", "opentelemetry.exporter", "structlog", "rich", "typer", "click", "grpc", "tracegraph_exporters")
"""Up to 230 ms each on the machines this is developed on."""


def loaded_by(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after *statement*."""
    code = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    # Isolated from PYTHON* variables and from coverage's start-up hook, which load modules of their own.
    done = subprocess.run([sys.executable, "-E", "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "statement",
    [
        "import tracegraph.errors",
        "import tracegraph",
        "import tracegraph.types",
        "import tracegraph.events",
        "import tracegraph.engine",
    ],
)
def test_import_loads_no_telemetry_and_no_terminal_code(statement: str) -> None:
    """Importing the library's vocabulary costs no exporter, no SDK, no logger and no terminal toolkit."""
    already = loaded_by("pass")

    loaded = loaded_by(statement) - already

    assert [name for name in sorted(loaded) if name.startswith(tuple(f"{costly}" for costly in COSTLY))] == []


@pytest.mark.parametrize(
    "statement", ["from tracegraph import StateGraph", "from tracegraph import InMemorySaver, Runtime, interrupt"]
)
def test_building_a_graph_loads_no_sdk_and_no_exporter(statement: str) -> None:
    """Whoever builds graphs without setting up telemetry never loads the OpenTelemetry SDK."""
    loaded = loaded_by(statement)

    assert [
        name for name in sorted(loaded) if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter", "grpc", "typer"))
    ] == []


def test_import_loads_only_what_was_asked_for() -> None:
    """`import tracegraph` does not load the graph builder, which `tracegraph.StateGraph` then does."""
    assert "tracegraph.graph" not in loaded_by("import tracegraph")
    assert "tracegraph.graph" in loaded_by("import tracegraph; tracegraph.StateGraph")
