"""Exceptions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A fault of a file or of the arguments. Lines and columns begin at 1."""

    message: str
    help: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """The place, the message and the help, as compilers print them."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text} ({self.help})" if self.help else text


class Error(Exception):
    """A failure of Lockwright. `faults` has all faults; the other attributes are those of the first."""

    def __init__(self, faults: list[Fault]) -> None:
        """Create an error from at least one fault."""
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults
        first = faults[0]
        self.message, self.help = first.message, first.help
        self.file, self.line, self.column = first.file, first.line, first.column

    def __reduce__(self) -> tuple[type[Error], tuple[list[Fault]]]:
        return type(self), (self.faults,)


class BadInput(Error, ValueError):
    """A file or an argument is invalid (exit status 2 of the command)."""


class Refused(Error, OSError):
    """The machine refuses, for example for lack of permission or disk space (exit status 3 of the command)."""
