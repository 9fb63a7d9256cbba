"""The commands as functions."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from ._command import command, json_of
from ._results import Results, Term
from ._schedule import Schedule
from ._tasks import TaskSet
from ._time import Duration

_Path = str | os.PathLike[str]


class Checked(Results):
    """The bounds of a system."""

    def __init__(self, found: dict[str, Any], system: TaskSet, options: list[str]) -> None:
        """Create the result of a check with these options."""
        super().__init__(found)
        self._system, self._options = system, options

    def explain(self, task: str) -> dict[str, list[Term]]:
        """The terms of the bound of a task, by protocol. Raises `BadInput` if there is no such task."""
        found = Results(_judged(self._system, "check", [*self._options, f"--explain={task}"]))
        return {name: result.terms for name, result in found.protocols.items()}


class Simulated(Results):
    """A simulation of a system, beside its bounds."""

    schedule: Schedule | None = None
    """The schedule around the job with the least slack; of several, the worst. `None` with ``protocol="all"``.

    Of a job with more intervals than a picture may have, it shows the end.
    """


def check(
    system: TaskSet,
    *,
    protocol: str | None = None,
    scheduler: str | None = None,
    bound: str | None = None,
    partition: str | None = None,
    overheads: _Path | None = None,
    sensitivity: bool = False,
) -> Checked:
    """Bound the response times of a system. The arguments are the options of ``lockwright check``.

    `protocol` is the protocol of the resources that name none, or ``"all"``. `overheads` is an overheads file. Raises
    `BadInput`.

    >>> import lockwright as lw
    >>> lw.check(lw.TaskSet([lw.Task("a", "10 ms", "4 ms"), lw.Task("b", "20 ms", "5 ms")]))["b"].response
    Duration('9 ms')
    """
    options = _options(
        protocol=protocol, scheduler=scheduler, bound=bound, partition=partition, overheads=overheads
    )
    extra = ["--sensitivity"] if sensitivity else []
    return Checked(_judged(system, "check", [*options, *extra]), system, options)


def simulate(
    system: TaskSet,
    *,
    horizon: int | str | Duration | None = None,
    protocol: str | None = None,
    offsets: str | None = None,
    runs: int | None = None,
    seed: int | None = None,
    random_execution: bool = False,
    overheads: _Path | None = None,
) -> Simulated:
    """Simulate a system in virtual time. The arguments are the options of ``lockwright simulate``.

    `horizon` is the length of each schedule. Raises `BadInput`.
    """
    options = _options(protocol=protocol, offsets=offsets, runs=runs, seed=seed, overheads=overheads)
    options += _options(**{"for": _duration(horizon)})
    if random_execution:
        options.append("--random-execution")
    if protocol == "all":
        return Simulated(_judged(system, "simulate", options))
    with tempfile.TemporaryDirectory(prefix="lockwright-") as folder:
        picture = os.path.join(folder, "schedule.svg")
        result = Simulated(_judged(system, "simulate", [*options, "--svg", picture]))
        with open(picture, encoding="utf-8") as file:
            result.schedule = Schedule(file.read())
    return result


def run(
    system: TaskSet,
    *,
    horizon: int | str | Duration | None = None,
    protocol: str | None = None,
    overheads: _Path | None = None,
    strict: bool = False,
    sched_deadline: bool = False,
) -> Results:
    """Execute a system as real-time threads, in a process of its own. Needs the permission for SCHED_FIFO.

    Under ``g-edf`` it needs CAP_SYS_NICE. With ``sched_deadline`` it needs root, the scheduler ``p-edf``, and resources
    under ``lock_free`` or ``wait_free``.

    The arguments are the options of ``lockwright run``. Raises `BadInput` and `Refused`.
    """
    options = _options(protocol=protocol, overheads=overheads, **{"for": _duration(horizon)})
    options += [option for option, is_set in [("--strict", strict), ("--sched-deadline", sched_deadline)] if is_set]
    return Results(_judged(system, "run", options, isolated=True))


def verify(
    system: TaskSet, *, horizon: int | str | Duration | None = None, protocol: str | None = None
) -> Results:
    """Measure this machine, charge its overheads, and execute the system beside the bounds.

    The arguments are the options of ``lockwright verify``. Raises `BadInput` and `Refused`.
    """
    options = _options(protocol=protocol, **{"for": _duration(horizon)})
    return Results(_judged(system, "verify", options, isolated=True))


def doctor() -> dict[str, Any]:
    """What this machine lacks for real time, as ``lockwright doctor --json`` prints it."""
    return json_of(command("doctor", "--json"), "")


def _duration(value: int | str | Duration | None) -> str | None:
    return None if value is None else str(Duration(value)).replace(" ", "")


def _options(**values: object) -> list[str]:
    return [f"--{key}={os.fspath(value) if isinstance(value, os.PathLike) else value}" for key, value in values.items() if value is not None]


def _judged(system: TaskSet, verb: str, options: list[str], isolated: bool = False) -> dict[str, Any]:
    completed = command(verb, "-", "--json", *options, input=system._source, isolated=isolated)
    return json_of(completed, system._file)
