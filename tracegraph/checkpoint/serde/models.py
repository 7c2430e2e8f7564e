"""Pydantic models, LangChain's messages among them, and Pydantic's secrets and URLs."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from functools import lru_cache
from typing import Any, Final

from tracegraph.checkpoint.serde.allowlist import LANGCHAIN_MESSAGES, Allowlist
from tracegraph.checkpoint.serde.classes import find, name_of
from tracegraph.checkpoint.serde.codes import Code, Extension, Part, attributes
from tracegraph.checkpoint.serde.errors import UnreadableBytesError

__all__ = ["PYDANTIC", "PYDANTIC_TEXT", "is_pydantic_text"]

_REQUIRED: Final = object()
_UNCHANGING: Final = frozenset({type(None), bool, int, float, str})
_SECRETS = ("SecretStr", "SecretBytes")


def _data(value: Any) -> list[Any]:
    """Return module, name, fields, names of those not in ``model_fields_set``, extras, private attributes."""
    cls = type(value)
    # What else is in __dict__ are cached properties, which are made anew.
    held = {name: value.__dict__[name] for name in cls.__pydantic_fields__ if name in value.__dict__}
    extra, private = value.__pydantic_extra__, value.__pydantic_private__
    was_set = value.__pydantic_fields_set__
    unset = [name for name in (*held, *(extra or ())) if name not in was_set]
    module, name = name_of(cls)
    if module == LANGCHAIN_MESSAGES:
        # Messages are many and short, and the defaults of their fields are part of LangChain's format.
        implied = {field for field in unset if field in held and _is_default(cls, field, held[field])}
        held = {field: item for field, item in held.items() if field not in implied}
        unset = [field for field in unset if field not in implied]
    data = [module, name, held, unset, extra, private]
    while not data[-1] and len(data) > 3:
        data.pop()
    return data


def _is_default(cls: type, name: str, item: Any) -> bool:
    default = _defaults(cls)[name]
    return type(item) is type(default) and bool(item == default)


@lru_cache(maxsize=256)
def _defaults(cls: Any) -> dict[str, Any]:
    """Return the defaults of a class whose factories always make the same; asking Pydantic each time takes long."""
    return {
        name: _REQUIRED if info.is_required() else info.get_default(call_default_factory=True, validated_data={})
        for name, info in cls.__pydantic_fields__.items()
    }


def _model(data: Any, types: Allowlist) -> Any:
    from pydantic import BaseModel

    absent: list[Any] = [[], None, None]
    module, name, held, unset, extra, private = data + absent[len(data) - 3 :]
    cls: Any = find(module, name, types, BaseModel)
    if cls is None:
        return held | (extra or {})
    was_set = {*held, *(extra or ())}.difference(unset)
    held = _completed(cls, held)
    made = object.__new__(cls)
    object.__setattr__(made, "__dict__", held)
    object.__setattr__(made, "__pydantic_fields_set__", was_set)
    if not cls.__pydantic_root_model__:  # which has neither
        object.__setattr__(made, "__pydantic_extra__", extra or ({} if cls.model_config.get("extra") == "allow" else None))
        object.__setattr__(made, "__pydantic_private__", _private(cls, private or {}, held))
    return made


def _completed(cls: Any, stored: dict[str, Any]) -> dict[str, Any]:
    """Return the stored fields that the class still has, and the defaults of those that it has got since."""
    is_message = cls.__module__.startswith("langchain_core.messages")
    held = {}
    for name, info in cls.__pydantic_fields__.items():
        if name in stored:
            held[name] = stored[name]
        elif is_message and (default := _defaults(cls)[name]) is not _REQUIRED:
            held[name] = default if type(default) in _UNCHANGING else default.copy()  # an empty list or dict
        elif info.is_required():
            raise UnreadableBytesError(
                f"{cls.__module__}.{cls.__qualname__} now needs {name!r}, which the stored value lacks; give it a default"
            )
        else:
            held[name] = info.get_default(call_default_factory=True, validated_data=held)
    return held


def _private(cls: Any, stored: dict[str, Any], held: dict[str, Any]) -> dict[str, Any] | None:
    if not cls.__private_attributes__:
        return None
    from pydantic_core import PydanticUndefined

    for name, attribute in cls.__private_attributes__.items():
        # Asked by hand: the method that does it has other parameters in each of Pydantic's versions.
        factory = attribute.default_factory
        if name in stored:
            continue
        if factory is not None:
            takes_data = getattr(attribute, "default_factory_takes_validated_data", False)
            stored[name] = factory(held | stored) if takes_data else factory()
        elif attribute.default is not PydanticUndefined:
            stored[name] = deepcopy(attribute.default)
    return stored


def _parts(value: Any) -> Iterable[Part]:
    return attributes(value.__dict__ | (value.__pydantic_extra__ or {}) | (value.__pydantic_private__ or {}))


PYDANTIC: Final = Extension(Code.PYDANTIC, _data, _model, _parts)


def is_pydantic_text(cls: type) -> bool:
    """Say whether *cls* is one of Pydantic's own secrets or URLs, each made from one text."""
    import pydantic

    if getattr(pydantic, cls.__name__, None) is not cls:
        return False
    return cls.__name__ in _SECRETS or (cls.__module__ == "pydantic.networks" and cls.__name__.endswith(("Url", "Dsn")))


def _text(value: Any) -> list[Any]:
    name = type(value).__name__
    return [name, value.get_secret_value() if name in _SECRETS else str(value)]


def _from_text(data: Any, _types: object) -> Any:
    import pydantic

    name, text = data
    cls = getattr(pydantic, name)
    if not isinstance(cls, type) or not is_pydantic_text(cls):
        raise UnreadableBytesError(f"pydantic.{name} is neither a secret nor a URL")
    return cls(text)


PYDANTIC_TEXT: Final = Extension(Code.PYDANTIC_TEXT, _text, _from_text)
