"""The YAML head of a Mermaid text reads back as what was given."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tracegraph.drawing.yaml_text import yaml_lines

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=12), st.sampled_from(["no", "1e3", "~", "a: b", "0x1", "."])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=12,
)


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=4))
def test_any_plain_data_read_back_equal(data: dict[str, Any]) -> None:
    """Quoting never changes a value, and a value never changes the structure."""
    assert yaml.safe_load("\n".join(yaml_lines(data))) == (data or None)


@pytest.mark.parametrize(
    "data",
    [
        {"title": "A graph", "config": {"theme": "neutral", "look": "handDrawn", "themeVariables": {"primaryColor": "#fff"}}},
        {"a": [1, {"b": [2, [3]], "c": {}}], "d": [], "f": -1.5},
    ],
)
def test_usual_heads_are_written_as_a_yaml_package_writes_them(data: dict[str, Any]) -> None:
    """So that drawings compare equal, character by character."""
    assert "\n".join(yaml_lines(data)) + "\n" == yaml.dump(data, default_flow_style=False, sort_keys=True)
