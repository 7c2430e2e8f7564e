"""JSON schemas of input, output and context equal LangGraph's."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired
from typing import TypedDict as PlainTypedDict

import langgraph.graph
import pytest
from pydantic import BaseModel, TypeAdapter
from typing_extensions import TypedDict

import tracegraph.graph
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph.jsonschema import converted
from tracegraph.managed import RemainingSteps


class Typed(TypedDict):
    a: Annotated[list, operator.add]
    b: int
    c: NotRequired[str]
    d: int | None


class Partial(TypedDict, total=False):
    a: int


@dataclass
class Record:
    a: Annotated[list, operator.add]
    b: int
    c: int = 3
    d: list[int] = field(default_factory=list)
    e: str | None = None
    f: Annotated[str | None, "doc"] = None


class Model(BaseModel):
    """A model."""

    a: int = 1
    b: list[str]


class Annotations:
    a: int
    b: Annotated[str | None, operator.add]


def body(state: Any) -> None: ...


def compiled(lib: Any, schema: Any, **options: Any) -> Any:
    return lib.StateGraph(schema, **options).add_node("n", body).add_edge("__start__", "n").compile(name="Shop")


@pytest.mark.parametrize("schema", [Typed, Partial, Record, Model, Annotations, int, Annotated[list, operator.add], list[int]])
def test_input_and_output_equal_langgraph_s(schema: Any) -> None:
    """Spec 1.11: own schema, type adapter, or a model made of what the channels take."""
    ours, theirs = compiled(tracegraph.graph, schema), compiled(langgraph.graph, schema)

    assert ours.get_input_jsonschema() == theirs.get_input_jsonschema()
    assert ours.get_output_jsonschema() == theirs.get_output_jsonschema()


def test_the_narrow_schemas_are_described() -> None:
    """Input and output schemas, not the state's."""
    app = compiled(tracegraph.graph, Typed, input_schema=Partial, output_schema=Model)

    assert app.get_input_jsonschema()["title"] == "Partial"
    assert app.get_output_jsonschema() == Model.model_json_schema()
    assert app.get_output_schema() is Model


@pytest.mark.parametrize("schema", [None, Typed, Model, Record])
def test_the_context_equals_langgraph_s(schema: Any) -> None:
    """None if there is none."""
    ours = compiled(tracegraph.graph, Typed, context_schema=schema)
    theirs = compiled(langgraph.graph, Typed, context_schema=schema)

    assert ours.get_context_jsonschema() == theirs.get_context_jsonschema()


def test_a_context_that_has_no_schema() -> None:
    """A ValueError that says what would have one."""
    with pytest.raises(GraphDefinitionError, match="make it a Pydantic model, a TypedDict or a dataclass"):
        compiled(tracegraph.graph, Typed, context_schema=int).get_context_jsonschema()


class Inner(PlainTypedDict):
    """Inside."""

    kind: Literal["a", "b"]


class Outer(PlainTypedDict):
    """Outside."""

    one: Inner
    many: list[Inner]
    maybe: Inner | None
    noted: Annotated[dict[str, Inner], "doc"]
    size: NotRequired[int]


def test_typed_dicts_of_the_standard_library_work_on_every_python() -> None:
    """Pydantic refuses them before 3.12, and LangGraph with it."""
    found = compiled(tracegraph.graph, Outer).get_input_jsonschema()

    assert (found["title"], found["description"]) == ("Outer", "Outside.")
    assert found["required"] == ["one", "many", "maybe", "noted"]
    assert found["properties"]["many"] == {"items": {"$ref": "#/$defs/Inner"}, "title": "Many", "type": "array"}
    assert found["$defs"]["Inner"]["properties"]["kind"]["enum"] == ["a", "b"]
    model = compiled(tracegraph.graph, Outer).get_input_schema()
    assert model(one={"kind": "a"}, many=[], noted={}).model_dump(exclude_unset=True) == {
        "one": {"kind": "a"},
        "many": [],
        "noted": {},
    }


class Tree(PlainTypedDict):
    children: list[Tree]


def test_what_pydantic_refuses_is_converted() -> None:
    """Whatever the running Python; a TypedDict inside itself is described as an object there."""
    assert TypeAdapter(converted(Outer)).json_schema() == compiled(tracegraph.graph, Outer).get_input_jsonschema()
    children = TypeAdapter(converted(Tree)).json_schema()["properties"]["children"]
    assert children == {"items": {"additionalProperties": True, "type": "object"}, "title": "Children", "type": "array"}
    assert "children" in str(compiled(tracegraph.graph, Tree).get_input_jsonschema())


class Managed(TypedDict):
    a: int
    left: RemainingSteps


def test_managed_values_are_not_in_the_model_of_an_input() -> None:
    """Nobody gives them."""
    assert list(compiled(tracegraph.graph, Managed).get_input_schema().model_fields) == ["a"]
