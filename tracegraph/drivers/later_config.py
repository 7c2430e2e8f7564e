"""A config for code that may never look at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

__all__ = ["LaterConfig"]


class LaterConfig(dict[str, Any]):
    """A dict whose items are made when somebody looks for them: each task leaves one for LangChain, most for nobody.

    What reads a dict past its methods, as json does, finds it empty; LangChain copies it before it hands it on.

    >>> config = LaterConfig(lambda: {"tags": ["mine"]})
    >>> config.get("tags"), {**config}
    (['mine'], {'tags': ['mine']})
    """

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        super().__init__()
        self._make: Callable[[], dict[str, Any]] | None = make

    def __reduce__(self) -> tuple[Any, ...]:
        """Let copies be dicts."""
        return dict, (dict(self),)

    def fill(self) -> None:
        """Make the items, once."""
        make = self._make
        if make is None:
            return
        made = make()
        # Only now: another thread that looks meanwhile makes them too, rather than find none.
        if self._make is not None:
            dict.update(self, made)
            self._make = None


_LOOKS_OR_CHANGES: Final = (
    *("__contains__", "__delitem__", "__eq__", "__getitem__", "__ior__", "__iter__", "__len__", "__ne__", "__or__"),
    *("__repr__", "__reversed__", "__ror__", "__setitem__", "clear", "copy", "get", "items", "keys", "pop", "popitem"),
    *("setdefault", "update", "values"),
)


def _after_filling(name: str) -> Callable[..., Any]:
    method = getattr(dict, name)

    def call(self: LaterConfig, *args: Any, **kwargs: Any) -> Any:
        self.fill()
        return method(self, *args, **kwargs)

    call.__name__ = name
    return call


# With an __iter__ that is not dict's own, {**config} and dict(config) ask for keys() and items, too.
for _name in _LOOKS_OR_CHANGES:
    setattr(LaterConfig, _name, _after_filling(_name))
