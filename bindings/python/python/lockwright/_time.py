"""Durations."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "sec": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_TEXT = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)\s*([a-zµ]+)\s*")


class Duration(int):
    """A time in whole nanoseconds, which prints with a unit.

    >>> Duration("1.5 ms")
    Duration('1500 us')
    >>> Duration("1.5 ms") + 500_000
    2000000
    """

    def __new__(cls, value: int | str | Duration) -> Duration:
        """Create a duration from nanoseconds, or from text with a unit such as ``"1.5 ms"``.

        Raises `ValueError` if the text is no duration, and `TypeError` for numbers that are not whole.
        """
        if isinstance(value, str):
            return super().__new__(cls, _nanoseconds(value))
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"a duration is text with a unit or a whole number of nanoseconds, not {value!r}")
        return super().__new__(cls, value)

    def __str__(self) -> str:
        """The time in the largest unit that leaves a whole number."""
        for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
            if self and self % size == 0:
                return f"{self // size} {unit}"
        return f"{int(self)} ns"

    def __repr__(self) -> str:
        return f"Duration('{self}')"


def _nanoseconds(text: str) -> int:
    match = _TEXT.fullmatch(text)
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text!r} is no duration: write a number and a unit, such as '1.5 ms'")
    time = Fraction(match[1].replace("_", "")) * _UNITS[match[2]]
    if time.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of nanoseconds")
    return int(time)


def as_duration(nanoseconds: int | None) -> Duration | None:
    """The duration of a JSON value."""
    return None if nanoseconds is None else Duration(nanoseconds)
