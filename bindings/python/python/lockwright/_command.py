"""Commands of the command line, executed in this process or in one of their own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from . import _lockwright
from ._errors import BadInput, Error, Fault, Refused

HOLDS, MISSES, BAD_INPUT, MACHINE, INTERRUPTED = 0, 1, 2, 3, 130

WATCHED = "LOCKWRIGHT_WATCHED"
"""The variable with the descriptor of a pipe: the command ends when the pipe does."""


@dataclass(frozen=True)
class Completed:
    """A command that has ended."""

    status: int
    """The exit status: 0 all deadlines hold, 1 some do not, 2 invalid input, 3 the machine refuses, 130 interrupted."""
    out: str
    """What it wrote to standard output."""
    err: str
    """What it wrote to standard error."""


def command(*arguments: str | os.PathLike[str], input: str | bytes = b"", isolated: bool = False) -> Completed:
    """Execute ``lockwright ARGUMENTS``, with `input` as standard input, and return what it wrote.

    The command executes in this process, without the interpreter lock. Ctrl-C stops it, except `run`, `verify` and
    `measure`. With `isolated` it executes in a process of its own, as commands that execute real-time threads should.
    There, Ctrl-C ends every command: it stops, cleans up and writes what it has, and then `KeyboardInterrupt` is raised.
    A second Ctrl-C kills it.

    >>> command("--version").out.startswith("lockwright ")
    True
    """
    words = [os.fspath(argument) for argument in arguments]
    data = input.encode() if isinstance(input, str) else input
    if not isolated:
        return Completed(*_lockwright.call(["lockwright", *words], data))
    process = [sys.executable, "-P", "-m", "lockwright", *words]
    # Files and not pipes: the command never waits for a reader, also while it ends.
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(data)
        source.seek(0)
        # The command ends when this pipe does: also if this process is killed, or interrupted within Popen.
        watched, held = os.pipe()
        try:
            environment = {**os.environ, WATCHED: str(watched)}
            # A group of its own: the terminal interrupts this process alone, and this process asks the command to end. A
            # failed start is an OSError that names the interpreter.
            with subprocess.Popen(
                process, stdin=source, stdout=out, stderr=err, process_group=0, pass_fds=[watched], env=environment
            ) as child:
                try:
                    status = _wait(child)
                except BaseException:
                    _end(child)
                    raise
        finally:
            os.close(held)
            os.close(watched)
        out.seek(0)
        err.seek(0)
        return Completed(status, out.read().decode(), err.read().decode(errors="replace"))


def _wait(child: subprocess.Popen[bytes]) -> int:
    """Wait for a command. With a timeout this sleeps, and a signal ends sleep.

    Without one, the system call may continue after a signal: libraries such as polars install handlers that restart it.
    """
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=60)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ask a command to end, and wait for it. An exception meanwhile, such as that of a second Ctrl-C, kills it."""
    try:
        # Not SIGINT, which is ignored in the background of a script.
        child.terminate()
        _wait(child)
    except BaseException:
        child.kill()
        child.wait()
        raise


def json_of(completed: Completed, name: str) -> dict[str, Any]:
    """The object that a command printed with ``--json``. Raises its faults; `name` is the file's name in them."""
    try:
        found: dict[str, Any] = json.loads(completed.out)
    except ValueError:
        text = completed.err.strip() or f"the command ended with status {completed.status} and without a result"
        raise _error(completed.status, [Fault(text)]) from None
    if "error" in found and "verb" not in found:
        raise _error(completed.status, [_fault(fault, name) for fault in [found["error"], *found["more"]]])
    if completed.status in (BAD_INPUT, MACHINE):
        # There are results, and something else failed.
        raise _error(completed.status, [Fault(completed.err.strip())])
    return found


def _fault(fault: dict[str, Any], name: str) -> Fault:
    place = fault["place"] or {}
    file = name if place.get("file") == "standard input" else place.get("file")
    return Fault(fault["message"], fault["help"], file, place.get("line"), place.get("column"))


def _error(status: int, faults: list[Fault]) -> Error:
    return {BAD_INPUT: BadInput, MACHINE: Refused}.get(status, Error)(faults)
