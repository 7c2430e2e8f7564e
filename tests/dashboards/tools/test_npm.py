"""Grafana's own types hold the dashboards, and the parsers of its query editors the queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from other_process import run

from dashboards.build import FOLDER
from dashboards.checks import queries_of, with_choices

PAGES = {page.stem: json.loads(page.read_text("utf-8")) for page in sorted((FOLDER / "grafana" / "dashboards").glob("*.json"))}

# JSON has no enums: their values stand for them.
HEAD = """import type { Dashboard } from "@grafana/schema";
type Plain<T> = T extends string ? `${T}`
  : T extends (infer Item)[] ? Plain<Item>[]
  : T extends object ? { [Key in keyof T]: Plain<T[Key]> }
  : T;
"""


def complaints(pages: Mapping[str, Any], npm: Path, folder: Path) -> list[str]:
    """Return what the compiler says to pages as values of Grafana's type."""
    (folder / "node_modules").symlink_to(npm / "node_modules")
    source = folder / "pages.ts"
    values = (f"export const {name.replace('-', '_')}: Plain<Dashboard> = {json.dumps(page)};\n" for name, page in pages.items())
    source.write_text(HEAD + "".join(values), "utf-8")
    flags = [
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--module",
        "esnext",
        "--moduleResolution",
        "bundler",
        "--target",
        "esnext",
    ]
    done = run([npm / "node_modules" / ".bin" / "tsc", *flags, source])
    assert (done.returncode == 0) == (done.stdout == ""), done
    return done.stdout.splitlines()


def test_pages_have_grafanas_type(npm: Path, tmp_path: Path) -> None:
    """Names, types and enums of everything that the type knows; options of single panels are open in it."""
    assert complaints(PAGES, npm, tmp_path) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"x": 0', '"x": "0"'),  # a number that is text
        ('"schemaVersion"', '"shemaVersion"'),  # a key that is none
        ('"mode": "absolute"', '"mode": "relative"'),  # a value that the enum has not
    ],
)
def test_a_wrong_type_is_noticed(right: str, wrong: str, npm: Path, tmp_path: Path) -> None:
    """Each kind of mistake."""
    text = json.dumps(PAGES["tracegraph-runs"])
    assert right in text

    assert complaints({"wrong": json.loads(text.replace(right, wrong, 1))}, npm, tmp_path)


def parsed(queries: list[dict[str, str]], npm: Path) -> list[list[int]]:
    """Return where each query has mistakes."""
    done = run(["node", npm / "queries.mjs"], json.dumps(queries))
    assert done.returncode == 0, done.stderr
    found: list[list[int]] = json.loads(done.stdout)
    assert len(found) == len(queries)
    return found


def test_queries_parse(npm: Path) -> None:
    """PromQL, TraceQL and LogQL, with everything chosen."""
    asked = [asked for page in PAGES.values() for asked in queries_of(page)]

    found = parsed([{"language": one.language, "text": with_choices(one.text)} for one in asked], npm)

    assert {f"{one.where}: {one.text}": where for one, where in zip(asked, found, strict=True) if where} == {}


@pytest.mark.parametrize(
    ("language", "text"),
    [("promql", "sum by (a (rate(b[5m]))"), ("traceql", '{ name = "a" && }'), ("logql", '{a="b"} | c=')],
)
def test_a_mistake_in_a_query_is_noticed(language: str, text: str, npm: Path) -> None:
    """By each of the parsers."""
    assert parsed([{"language": language, "text": text}], npm) != [[]]
