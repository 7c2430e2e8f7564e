"""No secret leaves: whatever it is nested in, whatever it stands between, and whatever a redactor does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry.content import PERSONAL, SECRETS, ContentPolicy, Where
from tracegraph.telemetry.content.budget import json_within
from tracegraph.telemetry.content.redaction import LeftOutError, Redaction
from tracegraph.telemetry.content.snapshot import snapshot

pytestmark = pytest.mark.content_on_spans("content is asked for")

PLACED = {
    "sk-proj-Abcdefgh1234567890": "sk-proj-Abcdefgh1234567890",
    "sk-ant-api03-Abcdefgh1234567890": "sk-ant-api03-Abcdefgh1234567890",
    "ghp_abcdefghijklmnopqrst123456": "ghp_abcdefghijklmnopqrst123456",
    "AKIAIOSFODNN7EXAMPLE": "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-DEF_123": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-DEF_123",
    "Bearer abcdef.123456": "abcdef.123456",
    "postgresql://me:hunter2@db.example.org:5432/app?a=b@c": "hunter2",
    "mysql://me:hun/ter2@db/app": "hun/ter2",
    "https://me:p@ssw0rd@example.org": "p@ssw0rd",
    "host=db password=hunter2 dbname=x": "hunter2",
    'Authorization: Basic "hunter2"': "hunter2",
    "Authorization: Bearer hunterx": "hunterx",
    '{"api_key": "hunter2", "a": 1}': "hunter2",
    '{"password": "hun\\"ter2"}': "ter2",
    "https://example.org/?access_token=hunter2&x=1": "hunter2",
    "OPENAI_API_KEY=hunter2\nX=1": "hunter2",
    "ada.lovelace@example.org": "lovelace@example",
    "4111 1111 1111 1111": "1111 1111",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEhunter2\n-----END RSA PRIVATE KEY-----": "MIIEhunter2",
}
"""What is written somewhere, and the part of it that must not leave."""

SURROUNDINGS = st.text(st.sampled_from(" \n,;()é漢😀\"'"), max_size=5)
KEYS = st.text(st.characters(codec="utf-8"), max_size=8)


@st.composite
def nested(draw: st.DrawFn) -> tuple[Any, str]:
    """Return a value with a secret somewhere in it, and the secret."""
    text, secret = draw(st.sampled_from(list(PLACED.items())))
    value: Any = f"{draw(SURROUNDINGS)} {text} {draw(SURROUNDINGS)}"
    for _ in range(draw(st.integers(0, 6))):
        more = draw(st.lists(st.integers() | KEYS, max_size=2))
        wraps = [
            lambda v, m: [*m, v],
            lambda v, m: (v, *m),
            lambda v, m: {draw(KEYS): v, "n": m},
            lambda v, m: {"a": {"b": [v]}, "c": m},
            lambda v, m: {json.dumps(v, ensure_ascii=False): m} if isinstance(v, str) else [v, m],
        ]
        value = draw(st.sampled_from(wraps))(value, more)
    return value, secret


@given(nested(), st.integers(64, 2_000))
def test_no_secret_survives_whatever_it_is_nested_in(placed: tuple[Any, str], budget: int) -> None:
    """In containers, as a key, inside JSON text: neither the full form nor the cut one has it."""
    value, secret = placed
    policy = ContentPolicy(redactors=(*SECRETS, *PERSONAL), budget_bytes=budget)

    data = policy.redacted(snapshot(value), "tracegraph.task.input")

    assert secret not in json.dumps(data, ensure_ascii=False)
    assert secret not in policy.on_span(data)[0]


@pytest.mark.parametrize("key", [
    "password", "PASSWORD", "db_password", "dbpassword", "userPassword", "DB-PASSWD", "api_key", "apiKey", "x-api-key",
    "X-API-KEY", "openaiApiKey", "authorization", "Proxy-Authorization", "cookie", "Set-Cookie", "client_secret", "clientSecret",
    "token", "accessToken", "refresh_token", "x-amz-security-token", "aws_secret_access_key", "private_key", "credentials",
])  # fmt: skip
def test_values_of_secret_keys_are_redacted(key: str) -> None:
    """In mappings, whatever the value is, and in headers given as pairs."""
    redaction = Redaction(())

    assert redaction.apply({key: "hunter2", "n": {key: {"deep": ["hunter2"]}}}, "a") == {
        key: "[redacted]",
        "n": {key: "[redacted]"},
    }
    assert redaction.apply([[key, "hunter2"]], "a") == [[key, "[redacted]"]]
    assert redaction.apply({key: None}, "a") == {key: None}


@pytest.mark.parametrize(
    "key", ["input_tokens", "max_tokens", "tokenizer", "author", "keys", "monkey", "passage", "compass", "n"]
)
def test_keys_that_merely_look_like_it_are_kept(key: str) -> None:
    """A count of tokens is no token."""
    assert Redaction(()).apply({key: "value"}, "a") == {key: "value"}


@pytest.mark.parametrize("text", [
    "the bearer of this letter", "task-1234567890abcdef1234", "http://localhost:8080/a@b", "mailto us @ home",
    "2024-01-02 03:04:05", "order 1234567890123456", "https://example.org/a?page=2", "risk-averse-investors-everywhere",
    "secret: ", "1.4111111111111111",
])  # fmt: skip
def test_harmless_texts_are_left_alone(text: str) -> None:
    """All ready redactors together change nothing in them."""
    assert Redaction((*SECRETS, *PERSONAL)).text(text, "a") == text


@pytest.mark.parametrize("text", [
    "a" * 300_000, "a." * 150_000, "1 " * 150_000, "eyJ" * 100_000, "://" * 100_000, "x@" * 150_000, "password=" * 30_000,
    "-----BEGIN PRIVATE KEY-----" * 10_000, 'api_key="' + "\\" * 200_000, "http://a:" * 30_000, "bearer " * 40_000,
], ids=lambda text: text[:20])  # fmt: skip
def test_long_texts_cost_a_few_passes_over_them(text: str) -> None:
    """No pattern goes back and forth: what a model or a web page says must not stop a run."""
    # Quadratic would be minutes, and the test would time out.
    assert len(Redaction((*SECRETS, *PERSONAL)).text(text, "a")) <= len(text)


def test_redactors_see_every_value_with_its_place_containers_first() -> None:
    """Also keys; what they return is looked into in turn."""
    seen: list[tuple[Any, Where]] = []

    def look(value: Any, where: Where) -> Any:
        seen.append((value, where))
        return {"changed": [1]} if value == "change me" else value

    data = ContentPolicy(redactors=(look,)).redacted({"a": ["change me"]}, "tracegraph.run.input")

    assert data == {"a": [{"changed": [1]}]}
    assert [(value, where.path, where.is_key) for value, where in seen] == [
        ({"a": ["change me"]}, (), False),
        (["change me"], ("a",), False),
        ("change me", ("a", 0), False),
        ([1], ("a", 0, "changed"), False),
        (1, ("a", 0, "changed", 0), False),
        ("changed", ("a", 0, "changed"), True),
        ("a", ("a",), True),
    ]
    assert {where.attribute for _, where in seen} == {"tracegraph.run.input"}


def test_a_redactor_without_end_ends() -> None:
    """One that wraps what it gets in a list, for ever, is stopped."""
    data = ContentPolicy(redactors=(lambda value, where: [value],)).redacted("x", "a")

    assert "x" not in json.dumps(data)


def test_keys_that_become_equal_keep_their_values() -> None:
    """Neither takes the other's place."""
    data = Redaction(PERSONAL).apply({"a@example.org": 1, "b@example.org": 2}, "a")

    assert data == {"[redacted]": 1, "[redacted] 2": 2}


def test_what_a_failing_redactor_was_for_is_left_out_and_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of the value is logged, not even by way of the exception's message."""

    def fails(value: Any, where: Where) -> Any:
        raise ValueError(f"no {value}")

    policy = ContentPolicy(redactors=(fails,))
    for _ in range(2):
        with pytest.raises(LeftOutError):
            policy.redacted("hunter2", "a")

    (record,) = caplog.records
    assert "fails failed with ValueError" in record.getMessage()
    assert "hunter2" not in caplog.text
    assert policy.redacted_text("hunter2", "exception.message") == "(left out: a redactor failed)"


@pytest.mark.parametrize("options", [
    {"redactors": ("emails",)}, {"budget_bytes": 10}, {"budget_bytes": "2000"}, {"redacted_keys": "("}, {"redacted_keys": 3},
    {"capture": "SOMETIMES"}, {"capture": 7}, {"max_attributes": 0},
])  # fmt: skip
def test_wrong_policies_are_refused(options: dict[str, Any]) -> None:
    """By name, when they are made."""
    with pytest.raises(InvalidInputError, match="SOMETIMES|redactor|budget_bytes|redacted_keys|captured|max_attributes"):
        ContentPolicy(**options)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.sets(st.text()),
)


@given(ANYTHING)
def test_a_snapshot_of_anything_is_json_in_utf8(value: Any) -> None:
    """Lone surrogates, NaN and integers beyond 64 bits would cost an exporter its batch."""
    text = json.dumps(snapshot(value), ensure_ascii=False, allow_nan=False)

    assert json_within(json.loads(text), len(text.encode()) + 10) == (json_within(json.loads(text), 10**9)[0], False)


def test_a_snapshot_shows_no_repr_and_no_binary_data() -> None:
    """An object of an unknown class may hold a password and print it; data is named by its size."""

    class Client:
        def __repr__(self) -> str:
            return "Client(password='hunter2')"

    shown = snapshot({"client": Client(), "data": b"1234", "image": "data:image/png;base64,AAAA", "error": ValueError("hunter2")})

    assert "hunter2" not in json.dumps(shown)
    assert shown["data"] == "<4 bytes>"
    assert shown["image"] == "<image/png, 4 characters of base64>"


def test_a_snapshot_of_what_cannot_be_read_says_so() -> None:
    """Loops, endless depth and classes that raise."""
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = 1
    for _ in range(500):
        deep = [deep]

    class Broken(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("no")

    assert snapshot(loop) == ["<contains itself>"]
    assert "<too deep>" in json.dumps(snapshot(deep))
    assert snapshot(Broken(a=1)) == "<unreadable Broken>"
