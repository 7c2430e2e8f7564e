"""Print pip constraints that pin each direct dependency to the lowest version pyproject.toml allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
# Users install these; the tools of the `dev` and `bench` extras reach nobody and stay at their newest.
extras = project["optional-dependencies"]
bounds = [*project["dependencies"], *extras["examples"], *extras["langchain"], *extras["postgres"], *extras["prometheus"]]
for requirement in bounds:
    name, version = re.fullmatch(r"([\w.-]+)(?:\[[\w,.-]+\])?>=([\w.]+)", requirement).groups()
    print(f"{name}=={version}")
