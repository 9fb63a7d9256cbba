"""Results of `check`, `simulate`, `run` and `verify`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ._tasks import html_table
from ._time import Duration, as_duration


@dataclass(frozen=True)
class Term:
    """One term of a bound: `count` times `each` is `total`."""

    cause: str
    by: str | None
    resource: str | None
    count: int
    each: Duration
    total: Duration
    why: str


@dataclass(frozen=True)
class Observed:
    """What was seen of a task in a schedule."""

    response: Duration | None
    """The longest response time."""
    blocking: Duration | None
    """The longest blocking of a job."""
    jobs: int
    """The number of jobs that finished."""
    misses: int
    """The number of deadlines that were missed."""


@dataclass(frozen=True)
class Bound:
    """A task with its bounds, and with what was seen of it."""

    name: str
    cpu: int | None
    priority: int
    cost: Duration
    deadline: Duration
    blocking: Duration | None
    """The bound of the blocking of a job; `None` without a bound."""
    response: Duration | None
    """The bound of the response time; `None` without a bound."""
    slack: Duration | None
    """The deadline less the bound, which may be negative; `None` without a bound."""
    schedulable: bool
    """The verdict on the task: proved for `check`, and otherwise what was observed."""
    proved: bool
    """Whether every deadline is proved to hold."""
    proof: str | None
    """The analysis with the least bound."""
    reason: str | None
    """Why there is no bound."""
    observed: Observed | None
    """What was seen; `None` for `check`."""

    @classmethod
    def _of(cls, task: dict[str, Any]) -> Bound:
        seen = None
        if task["jobs"] is not None:
            response, blocking = task["observed_response_ns"], task["observed_blocking_ns"]
            seen = Observed(as_duration(response), as_duration(blocking), task["jobs"], task["misses"])
        return cls(
            task["name"],
            task.get("cpu"),
            task["priority"],
            Duration(task["cost_ns"]),
            Duration(task["deadline_ns"]),
            as_duration(task["blocking_ns"]),
            as_duration(task["response_ns"]),
            as_duration(task["slack_ns"]),
            task["schedulable"],
            task["proved"],
            task.get("proof"),
            task.get("reason"),
            seen,
        )


class ProtocolResult:
    """The tasks under one protocol. Iterating gives the tasks, by CPU and by decreasing priority."""

    def __init__(self, found: dict[str, Any]) -> None:
        """Create a result from its JSON object."""
        self.json = found
        self._tasks = {task["name"]: Bound._of(task) for task in found["tasks"]}

    @property
    def protocol(self) -> str:
        """The protocol of the resources that name none."""
        return str(self.json["protocol"])

    @property
    def schedulable(self) -> bool:
        """The verdict, as the exit status of the command."""
        return bool(self.json["schedulable"])

    @property
    def proved(self) -> bool:
        """Whether every deadline is proved to hold."""
        return bool(self.json["proved"])

    @property
    def worst_slack(self) -> Duration | None:
        """The least slack of the tasks; `None` if a task has no bound."""
        return as_duration(self.json["worst_slack_ns"])

    @property
    def terms(self) -> list[Term]:
        """The terms of the bound that was to be explained."""
        explained = self.json.get("explain") or {"terms": []}
        return [
            Term(
                term["cause"],
                term["by"],
                term["resource"],
                term["count"],
                Duration(term["each_ns"]),
                Duration(term["total_ns"]),
                term["why"],
            )
            for term in explained["terms"]
        ]

    def __getitem__(self, task: str) -> Bound:
        return self._tasks[task]

    def __iter__(self) -> Iterator[Bound]:
        return iter(self._tasks.values())

    def __len__(self) -> int:
        return len(self._tasks)

    def __repr__(self) -> str:
        verdict = "schedulable" if self.schedulable else "not schedulable"
        return f"<{len(self)} tasks under {self.protocol}: {verdict}>"

    def _repr_html_(self) -> str:
        columns = ["task", "verdict", "cost", "blocking", "response", "deadline", "slack"]
        sees = any(task.observed for task in self)
        if sees:
            columns += ["seen response", "jobs", "misses"]

        def row(task: Bound) -> list[object]:
            words = ["ok" if task.schedulable else "no", task.cost, task.blocking, task.response, task.deadline, task.slack]
            seen = task.observed
            more = [seen.response, seen.jobs, seen.misses] if seen else []
            return [task.name, *("" if word is None else word for word in [*words, *more])]

        return html_table(columns, map(row, self))


class Results:
    """The results of a command: one for each protocol. With one protocol, the result also has its attributes."""

    def __init__(self, found: dict[str, Any]) -> None:
        """Create results from the JSON object of a command."""
        self.json = found
        self._protocols = {result["protocol"]: ProtocolResult(result) for result in found["results"]}

    @property
    def verb(self) -> str:
        """The command."""
        return str(self.json["verb"])

    @property
    def protocols(self) -> dict[str, ProtocolResult]:
        """The results by protocol; `check` sorts them best first."""
        return dict(self._protocols)

    @property
    def best(self) -> ProtocolResult:
        """The first result."""
        return next(iter(self._protocols.values()))

    @property
    def schedulable(self) -> bool:
        """Whether the verdict is positive under every protocol."""
        return all(result.schedulable for result in self._protocols.values())

    @property
    def proved(self) -> bool:
        """Whether every deadline is proved to hold under every protocol."""
        return all(result.proved for result in self._protocols.values())

    def __getitem__(self, key: str) -> Any:
        """The result under a protocol or, if there is one protocol, the task of this name."""
        if len(self._protocols) == 1 and key not in self._protocols:
            return self.best[key]
        return self._protocols[key]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each protocol and task, with the keys of the JSON. Times are in nanoseconds."""
        keys = (
            "name cpu priority cost_ns blocking_ns response_ns deadline_ns slack_ns schedulable proved proof reason "
            "observed_response_ns observed_blocking_ns jobs misses"
        ).split()
        return [
            {"protocol": name, **{key: task.get(key) for key in keys}}
            for name, result in self._protocols.items()
            for task in result.json["tasks"]
        ]

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`. Needs the extra ``lockwright[arrow]``."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.rows())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for every library that reads Arrow data. Needs the extra ``lockwright[arrow]``."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`. Needs the extra ``lockwright[pandas]``."""
        import pandas

        return pandas.DataFrame(self.rows())

    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`. Needs the extra ``lockwright[polars]``."""
        import polars

        return polars.DataFrame(self.rows(), infer_schema_length=None)

    def __repr__(self) -> str:
        return f"<{self.verb} of {self.json['system']}: {', '.join(map(repr, self._protocols.values()))}>"

    def _repr_html_(self) -> str:
        return "".join(f"<h4>{name}</h4>{result._repr_html_()}" for name, result in self._protocols.items())
