"""promtool on the alerts, their unit tests, the prices, Prometheus' configuration and each query of the dashboards."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from other_process import run

from dashboards.build import FOLDER
from dashboards.checks import queries_of, with_choices

RULES = FOLDER / "rules"
PAGES = [json.loads(page.read_text("utf-8")) for page in sorted((FOLDER / "grafana" / "dashboards").glob("*.json"))]


def test_rules_are_valid() -> None:
    """Alerts and prices."""
    done = run(["promtool", "check", "rules", RULES / "alerts.yaml", RULES / "prices.yaml"])

    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_when_they_must_and_not_when_they_must_not() -> None:
    """Their unit tests, in which each alert is met firing and silent."""
    done = run(["promtool", "test", "rules", RULES / "alerts.test.yaml"])

    assert done.returncode == 0, done.stdout + done.stderr
    rules = yaml.safe_load((RULES / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
    tests = yaml.safe_load((RULES / "alerts.test.yaml").read_text("utf-8"))["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    alerts = {rule["alert"] for rule in rules}
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts


def test_a_wrong_limit_is_noticed(tmp_path: Path) -> None:
    """The unit tests fail on rules that are not those that they were written for."""
    rules = (RULES / "alerts.yaml").read_text("utf-8")
    (tmp_path / "alerts.yaml").write_text(rules.replace("> 0.1 and", "> 0.9 and"), "utf-8")
    (tmp_path / "alerts.test.yaml").write_text((RULES / "alerts.test.yaml").read_text("utf-8"), "utf-8")

    done = run(["promtool", "test", "rules", tmp_path / "alerts.test.yaml"])

    assert done.returncode != 0
    assert "TracegraphRunsFail" in done.stdout + done.stderr


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    """With the rules where the compose file mounts them."""
    config = (FOLDER / "stack" / "prometheus.yaml").read_text("utf-8").replace("/etc/tracegraph-rules", str(RULES))
    (tmp_path / "prometheus.yaml").write_text(config, "utf-8")

    done = run(["promtool", "check", "config", tmp_path / "prometheus.yaml"])

    assert done.returncode == 0, done.stdout + done.stderr


def test_queries_have_the_right_types(tmp_path: Path) -> None:
    """Each of them as a recording rule, which only an expression without a type error can be."""
    asked = [asked for page in PAGES for asked in queries_of(page) if asked.language == "promql"]
    rules = [{"record": f"query:{at}", "expr": with_choices(one.text)} for at, one in enumerate(asked)]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}), "utf-8")

    done = run(["promtool", "check", "rules", path])

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout
