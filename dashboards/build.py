"""Everything that is written from code, as text by path below this folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from dashboards.alert_rules import all_alerts
from dashboards.alerts import rules_of, tests_of
from dashboards.boards import all_dashboards
from dashboards.grafana import json_of
from dashboards.sources import provisioning

__all__ = ["FOLDER", "built", "outdated", "write"]

FOLDER: Final = Path(__file__).parent
DASHBOARDS: Final = "grafana/dashboards"
SOURCES: Final = "grafana/provisioning/datasources/tracegraph.yaml"
ALERTS: Final = "rules/alerts.yaml"
ALERT_TESTS: Final = "rules/alerts.test.yaml"

_HEAD: Final = "# Written by `python -m dashboards`; change the code in dashboards/, not this file.\n"


def built() -> Mapping[str, str]:
    """Return the text of each file that is built, by its path below this folder."""
    alerts = all_alerts()
    pages = {f"{DASHBOARDS}/{board.uid}.json": json.dumps(json_of(board), indent=2) + "\n" for board in all_dashboards()}
    return {
        **pages,
        SOURCES: _yaml(provisioning()),
        ALERTS: _yaml(rules_of(alerts)),
        ALERT_TESTS: _yaml(tests_of(alerts, Path(ALERTS).name)),
    }


def _yaml(data: Any) -> str:
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=130)
    return _HEAD + text


def outdated(folder: Path = FOLDER) -> Iterator[str]:
    """Yield the paths of files in *folder* that are not what the code builds, or that it no longer builds."""
    texts = built()
    for path, text in texts.items():
        file = folder / path
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            yield path
    for file in sorted((folder / DASHBOARDS).glob("*.json")):
        if (path := file.relative_to(folder).as_posix()) not in texts:
            yield path


def write(folder: Path = FOLDER) -> None:
    """Write all files into *folder*, and remove dashboards that are no longer built."""
    for path in list(outdated(folder)):
        file = folder / path
        text = built().get(path)
        if text is None:
            file.unlink()
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
