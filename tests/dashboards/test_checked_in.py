"""What is checked in below dashboards/ is what the code builds, and asks only for what there is."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.build import FOLDER, built, outdated, write
from dashboards.checks import mistakes, queries_of
from dashboards.sources import JAEGER, UIDS, provisioning
from dashboards.vocabulary import unknown_in_promql

PAGES = sorted((FOLDER / "grafana" / "dashboards").glob("*.json"))
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def read(page: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.read_text("utf-8"))
    return found


def test_it_is_what_the_code_builds() -> None:
    """`python -m dashboards` writes it."""
    assert list(outdated()) == []


def test_a_changed_a_missing_and_a_surplus_file_are_noticed(tmp_path: Path) -> None:
    """And writing puts all three right."""
    write(tmp_path)
    changed, missing, *_ = sorted(built())
    surplus = tmp_path / "grafana" / "dashboards" / "old.json"
    (tmp_path / changed).write_text("{}", "utf-8")
    (tmp_path / missing).unlink()
    surplus.write_text("{}", "utf-8")

    assert sorted(outdated(tmp_path)) == sorted([changed, missing, "grafana/dashboards/old.json"])
    write(tmp_path)
    assert list(outdated(tmp_path)) == []


def test_alerts_and_links_from_spans_ask_for_what_there_is() -> None:
    """As the queries of panels do."""
    alerts = yaml.safe_load((FOLDER / "rules" / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
    links = [query["query"] for settings in _all("tracesToMetrics", provisioning()) for query in settings["queries"]]

    asked = [alert["expr"] for alert in alerts] + links
    assert len(links) == 2 * 4
    assert [word for query in asked for word in unknown_in_promql(query.replace("$$__tags", ""))] == []


def test_pages_are_known_by_their_file_names() -> None:
    """Grafana's address of a page is its uid, and alerts lead there."""
    assert {page.stem for page in PAGES} == {read(page)["uid"] for page in PAGES}
    alerts = yaml.safe_load((FOLDER / "rules" / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
    assert {alert["annotations"]["dashboard"].removeprefix("/d/") for alert in alerts} <= {page.stem for page in PAGES}


@EACH_PAGE
def test_nothing_is_wrong_with_a_page(page: Path) -> None:
    """Ids, places, data sources; metrics, labels, attributes and values in queries."""
    assert list(mistakes(read(page))) == []


def test_pages_ask_all_three_data_sources() -> None:
    """So that the checks of each language have something to check."""
    asked = [asked for page in PAGES for asked in queries_of(read(page))]

    assert {one.language for one in asked} == set(UIDS)
    assert len(asked) >= 90


def test_data_sources_of_pages_are_provisioned() -> None:
    """Under the same uids, and each leads to the others by uids that there are."""
    text = (FOLDER / "grafana" / "provisioning" / "datasources" / "tracegraph.yaml").read_text("utf-8")
    sources = yaml.safe_load(text)["datasources"]

    uids = {source["uid"] for source in sources}
    assert uids == {*UIDS.values(), JAEGER}
    assert set(_all("datasourceUid", sources)) <= uids


def _all(key: str, tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [value for name, value in tree.items() if name == key] + [x for value in tree.values() for x in _all(key, value)]
    return [x for value in tree for x in _all(key, value)] if isinstance(tree, list) else []


def change(path: str, value: Any) -> Any:
    """Return a function that sets one value in a page: ``panels.1.gridPos.x``."""

    def apply(page: dict[str, Any]) -> dict[str, Any]:
        found: Any = (page := deepcopy(page))
        *way, last = (int(part) if part.isdigit() else part for part in path.split("."))
        for step in way:
            found = found[step]
        found[last] = value
        return page

    return apply


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (change("panels.1.id", 1), "panel ids are not unique"),
        (change("panels.1.gridPos.x", 22), "Ended does not fit on the grid"),
        (change("panels.2.gridPos.x", 0), "Ended and Failed overlap"),
        (change("panels.1.targets", []), "Ended asks nothing"),
        (change("panels.1.targets.0.datasource.uid", "mine"), "the data source mine, which is not provisioned"),
        (change("panels.1.targets.0.expr", "sum(tracegraph_runs)"), "nothing is called tracegraph_runs"),
        (change("panels.1.targets.0.expr", 'up{gen_ai_step_name="x"}'), "nothing is called up{gen_ai_step_name}"),
        (change("panels.1.targets.0.expr", 'up{job="$job"}'), "a variable that there is not"),
        (
            change("panels.18.targets.0.query", '{ span.tracegraph.run.statu = "failed" }'),
            "nothing is called tracegraph.run.statu",
        ),
        (change("panels.18.targets.0.query", '{ name = "step" }'), "nothing is called step"),
        (change("panels.20.targets.0.expr", '{service_name="a"} | run_status="x"'), "nothing is called run_status"),
        (change("panels.20.targets.0.expr", '{service_name=~"$graph"}'), "Loki refuses to look through everything"),
        (change("templating.list.0.query.query", "label_values(up, nothing)"), "the variable service asks for"),
    ],
)
def test_mistakes_are_found(spoil: Any, complaint: str) -> None:
    """Each kind of them, in a page that has none."""
    page = read(FOLDER / "grafana" / "dashboards" / "tracegraph-runs.json")

    assert any(complaint in found for found in mistakes(spoil(page))), list(mistakes(spoil(page)))
