"""Numbers that msgpack has no form for."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from tracegraph.checkpoint.serde.codes import Code, Extension

__all__ = ["NUMBERS"]


def _integer_bytes(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)


def _integer(data: Any, _types: object) -> int:
    return int.from_bytes(data, "little", signed=True)


def _fraction(data: Any, _types: object) -> Fraction:
    numerator, denominator = data
    # A fraction of a made-up Decimal or text with a huge exponent would be computed for ever.
    if type(numerator) is not int or type(denominator) is not int:
        raise TypeError("a fraction is made of two integers")
    return Fraction(numerator, denominator)


NUMBERS: Final[dict[type, Extension]] = {
    # Smaller ones never get here: msgpack writes them itself.
    int: Extension(Code.BIG_INT, _integer_bytes, _integer),
    complex: Extension(Code.COMPLEX, lambda value: [value.real, value.imag], lambda data, _types: complex(*data)),
    Decimal: Extension(Code.DECIMAL, str, lambda data, _types: Decimal(data)),
    Fraction: Extension(Code.FRACTION, lambda value: [value.numerator, value.denominator], _fraction),
}
"""By exact type."""
