"""The graph that an ``@entrypoint`` function becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracegraph.constants import END, START
from tracegraph.graph.jsonschema import context_jsonschema, value_jsonschema, value_model
from tracegraph.pregel import Pregel

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["EntrypointGraph"]


class EntrypointGraph(Pregel):
    """A graph of one node, the function; its schemas are the function's annotations."""

    @property
    def workflow_name(self) -> str:
        """What traces call the graph: as the function is, though its name as a graph is LangGraph's."""
        (name,) = self.nodes
        return name

    def get_input_schema(self, config: Any = None) -> type[BaseModel]:  # noqa: ARG002  # as Runnables have it
        """Return a Pydantic model of the input."""
        return value_model(self.channels[START].UpdateType, f"{self.get_name()}Input")

    def get_output_schema(self, config: Any = None) -> type[BaseModel]:  # noqa: ARG002  # as Runnables have it
        """Return a Pydantic model of the result."""
        return value_model(self.channels[END].UpdateType, f"{self.get_name()}Output")

    def get_input_jsonschema(self, config: Any = None) -> dict[str, Any]:  # noqa: ARG002  # as Runnables have it
        """Return the JSON schema of the input."""
        return value_jsonschema(self.channels[START].UpdateType, f"{self.get_name()}Input")

    def get_output_jsonschema(self, config: Any = None) -> dict[str, Any]:  # noqa: ARG002  # as Runnables have it
        """Return the JSON schema of the result."""
        return value_jsonschema(self.channels[END].UpdateType, f"{self.get_name()}Output")

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """Return the JSON schema of the run context, None if there is no context schema."""
        return context_jsonschema(self.context_schema)
