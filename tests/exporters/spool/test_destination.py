"""The standard variables of OTLP, as the specification of the protocol's exporters has them."""

from __future__ import annotations

import pytest

from tracegraph_exporters.spool import Destination, DestinationError

BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"
OWN = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"


@pytest.fixture(autouse=True)
def _none_set(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("variables", "protocol", "endpoint"),
    [
        ({}, "grpc", "http://localhost:4317"),
        ({PROTOCOL: "http/protobuf"}, "http/protobuf", "http://localhost:4318/v1/traces"),
        ({BASE: "http://c:4318"}, "http/protobuf", "http://c:4318/v1/traces"),
        ({BASE: "http://c:4318/base/"}, "http/protobuf", "http://c:4318/base/v1/traces"),
        ({BASE: "http://c:4318", OWN: "http://d:4318/mine"}, "http/protobuf", "http://d:4318/mine"),
        ({BASE: "https://c:4317"}, "grpc", "https://c:4317"),
        ({BASE: "c:4317"}, "grpc", "https://c:4317"),
        ({BASE: "c:4317", "OTEL_EXPORTER_OTLP_INSECURE": "true"}, "grpc", "http://c:4317"),
        (
            {BASE: "http://c:9", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", PROTOCOL: "grpc"},
            "http/protobuf",
            "http://c:9/v1/traces",
        ),
    ],
)
def test_where_spans_go(variables: dict[str, str], protocol: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = Destination.find("traces")

    assert (found.protocol, found.endpoint) == (protocol, endpoint)


def test_the_other_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=1,b=x%3Dy")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "2.5")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "7")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem")
    found = Destination.find("traces")

    assert found.headers == {"a": "1", "b": "x=y"}
    assert (found.timeout_s, Destination.find("logs").timeout_s) == (2.5, 7.0)
    assert (found.is_compressed, found.certificate) == (True, "/ca.pem")


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        (PROTOCOL, "carrier-pigeon", "carrier-pigeon"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "seconds"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip", "gzip, none"),
    ],
)
def test_what_there_is_not_is_said(variable: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(DestinationError, match=says):
        Destination.find("traces")
