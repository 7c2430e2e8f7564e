"""What an answer to ``interrupt(..., response_schema=...)`` has to look like."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tracegraph.drivers.portable_types import portable
from tracegraph.errors import InvalidInputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["AnswerSchema"]


class AnswerSchema:
    """A response schema: a type that answers are made of, or a JSON schema, which only tells whoever answers."""

    __slots__ = ("_adapter", "json")

    def __init__(self, given: Any, node: str) -> None:
        """Read *given*.

        Raises:
            InvalidInputError: it is neither; *node* is who asks.
        """
        self._adapter: TypeAdapter[Any] | None = None
        if isinstance(given, dict):
            self.json: dict[str, Any] = given
            return
        from pydantic import PydanticUserError

        try:
            self._adapter, self.json = _adapter_of(given) if getattr(given, "__hash__", None) else _new_adapter(given)
        except (PydanticUserError, NameError, TypeError) as error:
            raise InvalidInputError(
                f"node {node!r} asks with response_schema={given!r}, from which no JSON schema can be made ({error}); give a "
                "Pydantic model, a TypedDict, a dataclass or another annotation, or a JSON schema as a dict"
            ) from error

    def validated(self, answer: Any) -> Any:
        """Return *answer* as the node gets it.

        Raises:
            ValueError: it does not fit (Pydantic's ``ValidationError``).
        """
        return answer if self._adapter is None else self._adapter.validate_python(answer)


def _new_adapter(given: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(portable(given))
    return adapter, adapter.json_schema()


# A node asks again on every resume, and building an adapter takes longer than all the rest of a pause.
_adapter_of = lru_cache(maxsize=256)(_new_adapter)
