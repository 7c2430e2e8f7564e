"""NumPy's arrays and scalars."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from msgpack import ExtType, packb
from sameness import SERDE, again

from tracegraph.checkpoint.serde.codes import Code
from tracegraph.checkpoint.serde.errors import UnreadableBytesError, UnserializableValueError

np = pytest.importorskip("numpy")

RECORD = np.dtype([("a", "<i4"), ("b", "<f8", (2,)), ("c", [("d", "S3")])])
ARRAYS: list[Any] = [
    *(np.arange(6).reshape(2, 3), np.array(1.5), np.zeros((0, 3)), np.array([], dtype="U0"), np.ones(2, dtype=">f4")),
    *(np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(12).reshape(3, 4)[:, ::2], np.arange(3)[::-1]),
    *(np.array([True, False]), np.array(["a", "bä"]), np.array([b"x"]), np.array([1 + 2j]), np.array([np.nan, -0.0])),
    *(np.array(["2026-01-01", "NaT"], dtype="M8[ns]"), np.array([1], dtype="m8[D]"), np.zeros(3, dtype="V5")),
    np.array([(1, [2, 3], ("x",))], dtype=RECORD),
    np.array([[(1, 2), {3}], [None, "x"]], dtype=object),
    np.array([], dtype=object),
]
SCALARS: list[Any] = [
    *(np.float64(1.5), np.float32(0.1), np.int8(-1), np.uint64(2**64 - 1), np.bool_(True), np.complex64(1j)),
    *(np.str_("ä"), np.bytes_(b"x"), np.datetime64("2026-01-01T00:00", "s"), np.timedelta64(1, "h"), np.float64("nan")),
]


def is_same_array(left: Any, right: Any) -> bool:
    if type(left) is not type(right) or left.dtype != right.dtype or left.shape != right.shape:
        return False
    return left.tolist() == right.tolist() if left.dtype.hasobject else left.tobytes() == right.tobytes()


@pytest.mark.parametrize("value", [*ARRAYS, *SCALARS], ids=lambda value: f"{value.dtype}{value.shape}")
def test_arrays_and_scalars_come_back_the_same(value: Any) -> None:
    """With dtype, byte order, shape and bits; also within other values."""
    for restored in (again(value), again({"a": (value,)})["a"][0]):
        assert is_same_array(restored, value)


def test_memory_order_is_kept_and_arrays_can_be_written_to() -> None:
    """Code that was fast stays fast, and code that changes an array goes on doing so."""
    restored = again(np.asfortranarray(np.ones((2, 3))))
    restored[0, 0] = 5

    assert restored.flags.f_contiguous


def test_float_that_is_a_python_float_too_stays_numpy() -> None:
    """``numpy.float64`` is a subclass of ``float``."""
    assert type(again([np.float64(1)])[0]) is np.float64


class Own(np.ndarray):  # type: ignore[misc,name-defined]
    pass


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(2).view(Own),
        np.ma.masked_array([1, 2], mask=[0, 1]),
        np.zeros(1, dtype=[("a", object)]),
        np.zeros(1, dtype={"names": ["a", "b"], "formats": ["<i4", "<i4"], "offsets": [4, 0]}),
        np.array(["a"], dtype=np.dtypes.StringDType()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_arrays_that_bytes_do_not_describe_are_refused(value: Any) -> None:
    """Subclasses hold more than an array does."""
    with pytest.raises(UnserializableValueError):
        SERDE.dumps_typed([value])


def test_path_leads_into_arrays_of_objects() -> None:
    """By position in the flat array."""
    with pytest.raises(UnserializableValueError) as caught:
        SERDE.dumps_typed([np.array([[1], [len]], dtype=object), np.zeros(1)])

    assert caught.value.path == "[0][1]"
    with pytest.raises(UnserializableValueError) as caught:
        SERDE.dumps_typed([np.zeros(1), len])
    assert caught.value.path == "[1]"


@pytest.mark.parametrize(
    "data",
    [
        *(["O", [1], "C", 5], ["|O", [1], "C", b"12345678"], [[["a", "|O"]], [1], "C", b"12345678"], ["<f8", [2**40], "C", b""]),
        *(["<f8", [2], "C", b"1234567"], ["nonsense", [1], "C", b"1"], ["<f8", [-1], "C", b"12345678"], ["<f8"]),
    ],
    ids=repr,
)
def test_made_up_arrays_are_an_error(data: Any) -> None:
    """Above all bytes that would be taken for addresses."""
    with pytest.raises(UnreadableBytesError):
        SERDE.loads_typed(("msgpack", packb(ExtType(Code.NDARRAY, packb(data)))))
    with pytest.raises(UnreadableBytesError):
        SERDE.loads_typed(("msgpack", packb(ExtType(Code.NUMPY_SCALAR, packb(["|O", b"12345678"])))))


def test_missing_library_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database may be read where it is not installed."""
    data = SERDE.dumps_typed(np.zeros(1))
    monkeypatch.setitem(sys.modules, "numpy", None)

    with pytest.raises(UnreadableBytesError, match="needs numpy, which is not installed"):
        SERDE.loads_typed(data)
