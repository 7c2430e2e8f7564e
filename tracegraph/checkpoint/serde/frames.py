"""pandas' frames, series, indexes and timestamps; found and imported as :mod:`~tracegraph.checkpoint.serde.arrays` does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tracegraph.checkpoint.serde.arrays import library
from tracegraph.checkpoint.serde.codes import Code, Extension, Part, attributes
from tracegraph.checkpoint.serde.errors import Refused

__all__ = ["PANDAS", "PANDAS_KINDS"]


# Arrays: NumPy's as they are; others as [kind, ...].


def _array_data(holder: Any) -> Any:
    pandas = library("pandas")
    dtype, array = holder.dtype, holder.array
    if isinstance(dtype, library("numpy").dtype):
        return holder.to_numpy()
    if isinstance(dtype, pandas.CategoricalDtype):
        return ["category", array.codes.copy(), dtype.categories, dtype.ordered]
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return ["zoned", array.asi8, dtype.unit, dtype.tz]
    values = [None if is_none else item for item, is_none in zip(array.astype(object), array.isna(), strict=True)]
    data = ["values", str(dtype), values]
    try:
        same = _array(data)
    except (TypeError, ValueError):
        same = None
    if same is None or same.dtype != dtype or not same.equals(array):
        raise Refused(holder, f"a column of dtype {dtype} has no stored form")
    return data


def _array(data: Any) -> Any:
    pandas = library("pandas")
    if not isinstance(data, list):
        return data
    kind, *rest = data
    if kind == "category":
        codes, categories, ordered = rest
        return pandas.Categorical.from_codes(codes, categories=categories, ordered=ordered)
    if kind == "zoned":
        instants, unit, zone = rest
        return pandas.DatetimeIndex(instants.view(f"M8[{unit}]")).tz_localize("UTC").tz_convert(zone).array
    dtype, values = rest
    return pandas.array(values, dtype=dtype)


def _index_data(index: Any) -> list[Any]:
    pandas = library("pandas")
    if type(index) is pandas.RangeIndex:
        return ["RangeIndex", index.start, index.stop, index.step, index.name]
    if type(index) is pandas.MultiIndex:
        return ["MultiIndex", [*index.levels], [code.astype("i8") for code in index.codes], [*index.names]]
    return ["Index", _array_data(index), index.name, getattr(index, "freqstr", None)]


def _index(kind: str, *data: Any) -> Any:
    pandas = library("pandas")
    if kind == "RangeIndex":
        start, stop, step, name = data
        return pandas.RangeIndex(start, stop, step, name=name)
    if kind == "MultiIndex":
        levels, codes, names = data
        return pandas.MultiIndex(levels=levels, codes=codes, names=names, verify_integrity=True)
    held, name, freq = data
    made = _array(held)
    index = pandas.Index(made, dtype=made.dtype, name=name)
    if freq is not None:
        index.freq = freq
    return index


def _series_data(series: Any) -> list[Any]:
    return ["Series", _array_data(series), series.index, series.name, series.attrs]


def _series(held: Any, index: Any, name: Any, attrs: Any) -> Any:
    made = _array(held)
    series = library("pandas").Series(made, index=index, dtype=made.dtype, name=name)
    series.attrs = attrs
    return series


def _frame_data(frame: Any) -> list[Any]:
    columns = [_array_data(frame.iloc[:, at]) for at in range(frame.shape[1])]
    return ["DataFrame", columns, frame.columns, frame.index, frame.attrs]


def _frame(columns: Any, names: Any, index: Any, attrs: Any) -> Any:
    pandas = library("pandas")
    made = [pandas.Series(held := _array(column), index=index, dtype=held.dtype) for column in columns]
    # By position first: names may repeat.
    frame = pandas.DataFrame(dict(enumerate(made)), index=index)
    frame.columns = names
    frame.attrs = attrs
    return frame


def _timestamp_data(value: Any) -> list[Any]:
    return ["Timestamp", value.asm8, value.tz, value.fold]


def _timestamp(instant: Any, zone: Any, fold: int) -> Any:
    made = library("pandas").Timestamp(instant)
    return made.replace(tzinfo=zone, fold=fold) if zone is None else made.tz_localize("UTC").tz_convert(zone)


def _missing_data(value: Any) -> list[Any]:
    return [type(value).__name__]


_PACK: Final = {
    "DataFrame": _frame_data,
    "Series": _series_data,
    "Timestamp": _timestamp_data,
    "Timedelta": lambda value: ["Timedelta", value.asm8],
    "NAType": _missing_data,
    "NaTType": _missing_data,
}
_REVIVE: Final[dict[str, Any]] = {
    "DataFrame": _frame,
    "Series": _series,
    "Timestamp": _timestamp,
    "Timedelta": lambda length: library("pandas").Timedelta(length),
    "NAType": lambda: library("pandas").NA,
    "NaTType": lambda: library("pandas").NaT,
}
_INDEXES: Final = ("Index", "RangeIndex", "MultiIndex", "DatetimeIndex", "TimedeltaIndex", "CategoricalIndex")
PANDAS_KINDS: Final = frozenset({*_PACK, *_INDEXES})
"""Names of the types that are stored."""


def _data(value: Any) -> list[Any]:
    return _PACK.get(type(value).__name__, _index_data)(value)


def _revived(data: Any, _types: object) -> Any:
    kind, *rest = data
    return _REVIVE[kind](*rest) if kind in _REVIVE else _index(kind, *rest)


def _parts(value: Any) -> Iterable[Part]:
    if type(value).__name__ == "DataFrame":
        yield ".columns", value.columns
        yield ".index", value.index
        for at in range(value.shape[1]):
            yield f".iloc[:, {at}]", value.iloc[:, at]
    elif value.__class__.__name__ in ("Series", *_INDEXES) and value.dtype == object:
        yield ".array", value.to_numpy()
    yield from attributes({"attrs": attrs} if (attrs := getattr(value, "attrs", None)) else {})


PANDAS: Final = Extension(Code.PANDAS, _data, _revived, _parts)
