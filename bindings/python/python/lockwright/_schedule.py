"""Pictures of schedules."""

from __future__ import annotations

import os


class Schedule:
    """A schedule as an SVG picture, which notebooks show."""

    def __init__(self, svg: str) -> None:
        """Create a schedule from its picture."""
        self.svg = svg

    def plot(self) -> Schedule:
        """Return the schedule itself: a notebook shows the result of a cell."""
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture into an SVG file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Schedule: {len(self.svg)} bytes of SVG>"
