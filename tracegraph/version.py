"""The version of this distribution, written once; the build reads it from here.

>>> VERSION.split(".")[0].isdigit()
True

"""

from __future__ import annotations

from typing import Final

__all__ = ["VERSION"]

VERSION: Final = "0.1.0"
