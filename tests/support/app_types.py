"""Classes of an imaginary application, whose objects lie in LangGraph databases."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pydantic import BaseModel, Field


@dataclass
class Order:
    number: int
    lines: list[str] = field(default_factory=list)


class Colour(Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


class Customer(BaseModel):
    name: str
    colour: Colour = Colour.RED


class Aliased(BaseModel):
    """Cannot be made from its own field names."""

    number: int = Field(alias="Number")
