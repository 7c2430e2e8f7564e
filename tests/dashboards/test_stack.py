"""The stack's configuration: pinned images, loopback only, files that are there, names that the registry knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.build import FOLDER
from dashboards.prices import PART, PRICE, PRICED
from dashboards.vocabulary import SERIES
from tracegraph.telemetry.semconv.registry import ATTRIBUTES

ROOT = FOLDER.parent
COMPOSE = ROOT / "docker-compose.yml"
STACK = FOLDER / "stack"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


SERVICES = read(COMPOSE)["services"]
EACH_SERVICE = pytest.mark.parametrize("name", SERVICES)


@EACH_SERVICE
def test_its_image_has_one_version(name: str) -> None:
    """No tag that moves."""
    assert re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+", SERVICES[name]["image"])


@EACH_SERVICE
def test_its_ports_are_on_loopback_only(name: str) -> None:
    """Nobody logs in."""
    ports = SERVICES[name]["ports"]

    assert ports
    assert all(re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port) for port in ports)


def test_the_page_names_addresses_that_are_published() -> None:
    """Of Grafana, Jaeger, Prometheus, the collector and the health checks."""
    page = (ROOT / "docs" / "dashboards.md").read_text("utf-8")

    published = {port.split(":")[1] for service in SERVICES.values() for port in service["ports"]}
    named = set(re.findall(r"localhost:(\d+)", page))
    assert len(named) >= 6
    assert named <= published


def mounted(service: Any) -> Iterator[tuple[Path, str]]:
    for volume in service["volumes"]:
        source, target, *_ = volume.split(":")
        if source.startswith("."):
            yield ROOT / source, target


@EACH_SERVICE
def test_files_that_it_is_told_of_are_mounted(name: str) -> None:
    """By its command and environment; a wrong path shows only when the container starts."""
    told = re.findall(
        r"/etc/tracegraph[\w./-]*", str(SERVICES[name].get("command", "")) + str(SERVICES[name].get("environment", ""))
    )
    here = {target: source for source, target in mounted(SERVICES[name])}
    assert all(source.is_dir() for source in here.values())
    for path in told:
        target = next(target for target in here if path.startswith(f"{target}/"))
        assert (here[target] / path.removeprefix(f"{target}/")).is_file(), path


def test_dependencies_can_be_waited_for() -> None:
    """Health is asked for only where there is a check of it."""
    for service in SERVICES.values():
        for other, how in service.get("depends_on", {}).items():
            assert how["condition"] == "service_started" or "healthcheck" in SERVICES[other]


def merged(a: Any, b: Any) -> Any:
    """Return two configurations of a collector as one: maps key by key, anything else from the second."""
    return (
        {**a, **{key: merged(a[key], b[key]) if isinstance(a.get(key), dict) else b[key] for key in b}}
        if isinstance(b, dict)
        else b
    )


@pytest.mark.parametrize("files", [("collector.yaml",), ("collector.yaml", "collector-tail-sampling.yaml"), ("jaeger.yaml",)])
def test_pipelines_are_made_of_what_is_configured(files: tuple[str, ...]) -> None:
    """And nothing is configured that no pipeline has."""
    config: Any = {}
    for file in files:
        config = merged(config, read(STACK / file))

    used: dict[str, set[str]] = {"receivers": set(), "processors": set(), "exporters": set()}
    for pipeline in config["service"]["pipelines"].values():
        for kind, parts in used.items():
            parts.update(pipeline[kind])
    assert {kind: set(config[kind]) for kind in used} == used
    assert set(config["extensions"]) == set(config["service"]["extensions"])


def test_the_collector_sends_to_services_and_ports_that_there_are() -> None:
    """Each of them takes what comes at that port by its own configuration."""
    exporters = read(STACK / "collector.yaml")["exporters"]

    found = {re.sub(r"^http://", "", exporter["endpoint"]).split("/")[0] for exporter in exporters.values()}
    otlp = "distributor.receivers.otlp.protocols.grpc.endpoint"
    listening = {
        f"tempo:{_at(STACK / 'tempo.yaml', otlp).split(':')[1]}",
        f"jaeger:{_at(STACK / 'jaeger.yaml', 'receivers.otlp.protocols.grpc.endpoint').split(':')[1]}",
        f"loki:{_at(STACK / 'loki.yaml', 'server.http_listen_port')}",
        "prometheus:9090",
    }
    assert found == listening


def _at(path: Path, way: str) -> Any:
    found = read(path)
    for step in way.split("."):
        found = found[step]
    return found


def test_sampling_decides_by_attributes_that_there_are() -> None:
    """And by values that they can have. Errors and slow runs are kept, the rest in part."""
    policies = read(STACK / "collector-tail-sampling.yaml")["processors"]["tail_sampling"]["policies"]

    assert {"status_code", "latency", "probabilistic"} <= {policy["type"] for policy in policies}
    for policy in policies:
        rule = policy[policy["type"]]
        if "key" in rule:
            attribute = ATTRIBUTES[rule["key"]]
            if attribute.values:
                assert set(rule["values"]) <= set(attribute.values)


def test_prices_are_of_the_series_that_dashboards_multiply_by() -> None:
    """One for each model and part."""
    (group,) = read(FOLDER / "rules" / "prices.yaml")["groups"]

    seen = set()
    for rule in group["rules"]:
        assert rule["record"] == PRICE
        assert set(rule["labels"]) < SERIES[PRICE]
        assert rule["labels"][PART] in PRICED
        seen.add(tuple(sorted(rule["labels"].items())))
    assert len(seen) == len(group["rules"])
