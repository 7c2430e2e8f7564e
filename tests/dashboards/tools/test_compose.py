"""docker-compose reads the stack, also with the variant that samples. The images are not run: that needs a container engine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from other_process import run

from dashboards.build import FOLDER

COMPOSE = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
BASE = FOLDER.parent / "docker-compose.yml"


@pytest.mark.parametrize("files", [[BASE], [BASE, FOLDER / "stack" / "tail-sampling.compose.yml"]], ids=["all", "sampled"])
def test_it_is_valid(files: list[Path]) -> None:
    """By the schema, and with every dependency defined."""
    done = run([*COMPOSE, *(word for file in files for word in ("-f", str(file))), "config", "-q"])

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_mistake_is_noticed(tmp_path: Path) -> None:
    """A key that is none."""
    wrong = tmp_path / "docker-compose.yml"
    wrong.write_text(BASE.read_text("utf-8").replace("    image: grafana", "    imgae: grafana"), "utf-8")

    assert run([*COMPOSE, "-f", wrong, "config", "-q"]).returncode != 0
