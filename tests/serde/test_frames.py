"""pandas' frames and what they are made of."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sameness import SERDE, again

from tracegraph.checkpoint.serde import frames
from tracegraph.checkpoint.serde.errors import Refused, UnserializableValueError

pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")

NY = ZoneInfo("America/New_York")
INDEXES: list[Any] = [
    *(pd.RangeIndex(1, 9, 2, name="r"), pd.Index([3, 1], name=("a", 1)), pd.Index(["x", "y"]), pd.Index([1.5, None])),
    *(pd.Index([(1,), "a"], dtype=object), pd.date_range("2026-01-01", periods=3, freq="D", tz=NY), pd.Index([], dtype="i8")),
    *(pd.DatetimeIndex(["2026-01-01", None]), pd.to_timedelta([1, 2], unit="h"), pd.CategoricalIndex(["a", "b", "a"])),
    pd.MultiIndex.from_tuples([("a", 1), ("b", 2), ("a", 2)], names=["k", None]),
]
SERIES: list[Any] = [
    *(
        pd.Series([1, 2], name="s"),
        pd.Series([1.5, np.nan]),
        pd.Series(["a", None]),
        pd.Series([True]),
        pd.Series([], dtype="f4"),
    ),
    *(pd.Series([1, None], dtype="Int64"), pd.Series([True, None], dtype="boolean"), pd.Series(["a", None], dtype="string")),
    *(pd.Series(["a", "b", None], dtype="category"), pd.Series(pd.Categorical(["lo"], ["lo", "hi"], ordered=True))),
    *(pd.Series(pd.date_range("2026-10-31", periods=3, tz=NY)), pd.Series(pd.to_datetime(["2026-01-01"], utc=True))),
    *(pd.Series([Decimal(1), {2}, dt.date(2026, 1, 1), (1,)], index=list("abcd")), pd.Series([dt.timedelta(1)])),
    pd.Series(pd.arrays.SparseArray([0, 1])),
]
FRAMES: list[Any] = [
    pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [1.5, np.nan]}, index=["r", "s"]),
    pd.DataFrame({"t": pd.date_range("2026-01-01", periods=2, tz="UTC"), "n": pd.array([1, None], dtype="Int64")}),
    *(pd.DataFrame(), pd.DataFrame(index=[1, 2]), pd.DataFrame(columns=["a", "b"])),
    pd.DataFrame([[1, "x"], [2, "y"]], columns=["same", "same"]),
    pd.DataFrame({("a", 1): [1], ("a", 2): [2.0]}, index=pd.MultiIndex.from_tuples([("k", 1)])),
    pd.DataFrame({"o": [{(1, 2)}, [3]]}),
]
SCALARS: list[Any] = [
    *(pd.Timestamp("2026-01-01"), pd.Timestamp("2026-11-01 05:30", tz=NY), pd.Timestamp(2026, 11, 1, 1, 30, fold=1, tz=NY)),
    *(pd.Timestamp(1, unit="ns"), pd.Timestamp("2026-01-01").as_unit("s"), pd.Timedelta("1h"), pd.Timedelta(1, unit="ns")),
]


@pytest.mark.parametrize("value", INDEXES, ids=lambda value: type(value).__name__)
def test_indexes_come_back_the_same(value: Any) -> None:
    """With names, zones and frequency."""
    restored = again([value])[0]

    pd.testing.assert_index_equal(restored, value, exact=True)
    assert getattr(restored, "freq", None) == getattr(value, "freq", None)


@pytest.mark.parametrize("value", SERIES, ids=lambda value: str(value.dtype))
def test_series_come_back_the_same(value: Any) -> None:
    """Of each dtype, with attributes."""
    value.attrs = {"note": (1,)}
    restored = again([value])[0]

    pd.testing.assert_series_equal(restored, value, check_freq=True)
    assert [*map(type, restored)] == [*map(type, value)]
    assert (restored.dtype, restored.attrs) == (value.dtype, value.attrs)


@pytest.mark.parametrize("value", FRAMES, ids=lambda value: str(value.shape))
def test_frames_come_back_the_same(value: Any) -> None:
    """Names may repeat, and there may be no rows or no columns."""
    value.attrs = {"note": (1,)}
    restored = again([value])[0]

    pd.testing.assert_frame_equal(restored, value, check_column_type=True)
    assert (list(restored.dtypes), restored.attrs) == (list(value.dtypes), value.attrs)


@pytest.mark.parametrize("value", SCALARS, ids=repr)
def test_timestamps_come_back_the_same(value: Any) -> None:
    """With zone, fold and unit."""
    restored = again([value])[0]

    assert (restored, type(restored), restored.unit) == (value, type(value), value.unit)
    if type(value) is pd.Timestamp:
        assert (restored.tz, restored.fold) == (value.tz, value.fold)


def test_missing_values_are_the_ones_there_are() -> None:
    """Code asks for them with ``is``."""
    restored = again([pd.NA, pd.NaT])

    assert restored[0] is pd.NA
    assert restored[1] is pd.NaT


class Own(pd.DataFrame):  # type: ignore[misc]
    pass


@pytest.mark.parametrize(
    "value",
    [
        *(Own({"a": [1]}), pd.Series(pd.period_range("2026-01", periods=2, freq="M")), pd.Series(pd.interval_range(0, 2))),
        *(pd.Period("2026-01"), pd.Interval(0, 1)),
    ],
    ids=lambda value: str(getattr(value, "dtype", type(value).__name__)),
)
def test_what_has_no_stored_form_is_refused(value: Any) -> None:
    """Loudly, as everywhere."""
    with pytest.raises(UnserializableValueError):
        SERDE.dumps_typed([value])


@pytest.mark.parametrize("read_as", ["unknown", "Int64"])
def test_column_whose_dtype_text_does_not_lead_back_is_refused(read_as: str) -> None:
    """A library may bring dtypes of its own, whose names pandas does not know or takes for another's."""

    class Foreign:
        def __str__(self) -> str:
            return read_as

    holder = SimpleNamespace(dtype=Foreign(), array=pd.array([1, None], dtype="Int64"))

    with pytest.raises(Refused, match="has no stored form"):
        frames._array_data(holder)


def test_path_leads_into_frames() -> None:
    """To the column and the position in it, to the index, to the attributes."""
    frame = pd.DataFrame({"a": [1, 2], "b": [1, len]})
    noted = pd.Series([1])
    noted.attrs["x"] = len
    cases = [
        (frame, "[0].iloc[:, 1].array[1]"),
        (noted, "[0].attrs['x']"),
        ((pd.DataFrame({"a": [1]}), pd.Timestamp(0), pd.MultiIndex.from_tuples([(1, 2)]), len), "[0][3]"),
        (pd.Index([len], dtype=object), "[0].array[0]"),
        (pd.DataFrame({"a": [1]}, index=[len]), "[0].index.array[0]"),
        (pd.DataFrame({len: [1]}), "[0].columns.array[0]"),
    ]

    for value, path in cases:
        with pytest.raises(UnserializableValueError) as caught:
            SERDE.dumps_typed([value])
        assert caught.value.path == path
