"""Generators of random systems, and of their utilizations.

A `Generator` takes the values of the tables ``[generator]`` and ``[sections]`` of a study file; docs/study.md describes
them. A system is computed from a seed and its number alone, so systems may be drawn in any order and on any machine.

>>> import lockwright as lw
>>> generator = lw.generators.Generator(cpus=2, tasks=8, load=0.5, sections={"accesses": 2, "lengths": "short"})
>>> len(generator.draw(seed=1, sample=7))
8
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import _lockwright
from ._errors import BadInput, Fault
from ._tasks import TaskSet
from ._time import Duration
from ._toml import toml_lines


class Generator:
    """A generator of systems. It is immutable and can be pickled."""

    def __init__(self, *, sections: Mapping[str, Any] | None = None, **values: Any) -> None:
        """Create a generator from the keys of ``[generator]`` and ``[sections]``, such as ``cpus=4, tasks=20, load=0.5``.

        A value is a number, text, a `Duration`, or a list or a mapping of these. A value that a `Study` varies is left
        out here. Values are checked where a system is drawn or a study is written.
        """
        self.values = {key: value for key, value in values.items() if value is not None}
        self.sections = dict(sections) if sections is not None else None

    @property
    def text(self) -> str:
        """The tables of a study file."""
        lines = ["[generator]", *toml_lines(self.values.items())]
        if self.sections is not None:
            lines += ["", "[sections]", *toml_lines(self.sections.items())]
        return "\n".join(lines) + "\n"

    def draw(self, seed: int = 0, sample: int = 0) -> TaskSet:
        """Draw the system number `sample`: the one that a study with this seed judges in the cell with these values.

        Raises `BadInput` if a value is invalid or missing, or if there is no such system.
        """
        _check_words(seed=seed, sample=sample)
        text, faults = _lockwright.draw(self.text, seed, sample)
        if text is None:
            raise BadInput([Fault(message, help, "the generator", line, column) for message, help, line, column in faults])
        return TaskSet.parse(text)

    def __repr__(self) -> str:
        values = [f"{key}={value!r}" for key, value in self.values.items()]
        if self.sections is not None:
            values.append(f"sections={self.sections!r}")
        return f"Generator({', '.join(values)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Generator) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def rtas2008(
    m: int = 4,
    *,
    utilizations: str = "uniform-low",
    cap: float = 0.8,
    accesses: int = 5,
    alpha: int = 1,
    section: int | str | Duration | None = "14 us",
    nesting: str = "traced-groups",
) -> Generator:
    """Return the generator of Brandenburg, Calandrino, Block, Leontyev and Anderson, RTAS 2008, on `m` processors.

    Periods are uniform from 10 to 100 ms. Tasks are added up to `cap` of the platform, and at most 99. Each task makes
    `accesses` requests (K) with the degree of sharing `alpha` (α) and sections of the length `section`; `None` is for a
    study that varies ``lengths``. Here sections are a part of the execution time; ``papers.rtas2008`` adds them, as the
    paper does.
    """
    sections = {"accesses": accesses, "degree": alpha, "nesting": nesting}
    if section is not None:
        sections["lengths"] = Duration(section)
    periods = {"uniform": ["10 ms", "100 ms"]}
    return Generator(cpus=m, tasks=99, load=cap, utilizations=utilizations, periods=periods, sections=sections)


def fixed_sum(
    limits: Sequence[tuple[float, float]], total: float, *, count: int = 1, seed: int = 0
) -> list[list[float]]:
    """Draw `count` vectors with the sum `total`, each value within its own limits, uniform among all such vectors.

    This is the distribution of ConvolutionalFixedSum (Griffin, Davis, RTAS 2025). Ctrl-C stops it. Raises `ValueError`
    if there is no such vector.

    >>> [drawn] = fixed_sum([(0.0, 0.1), (0.2, 0.9), (0.0, 0.5)], 1.0)
    >>> round(sum(drawn), 9)
    1.0
    """
    _check_words(count=count, seed=seed)
    return _lockwright.fixed_sum([(float(least), float(most)) for least, most in limits], total, count, seed)


def _check_words(**numbers: int) -> None:
    for name, number in numbers.items():
        if not 0 <= number < 1 << 64:
            raise BadInput([Fault(f"{name} is {number}, and not from 0 to {(1 << 64) - 1}")])
