"""Task sets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from . import _lockwright
from ._errors import BadInput, Fault
from ._time import Duration
from ._toml import toml, toml_lines

_Time = int | str | Duration


@dataclass(frozen=True)
class Request:
    """Critical sections of a task: `count` sections of `length` each, on `resource`."""

    resource: str
    length: _Time
    count: int = 1


@dataclass(frozen=True)
class Resource:
    """A resource. A value of `None` is left to the defaults of task-set files.

    `object` is the kind of a non-blocking object, whose costs overheads files have: ``"buffer"``, ``"queue"`` or
    ``"heap"``. It matters under the protocols `lock_free` and `wait_free`. `cutoff` is a priority of `ics_lock`.
    """

    name: str
    protocol: str | None = None
    ceiling: int | None = None
    home: int | None = None
    group: str | None = None
    object: str | None = None
    cutoff: int | None = None


@dataclass(frozen=True)
class Task:
    """A sporadic task. A value of `None` is left to the defaults of task-set files; see docs/task-set.md."""

    name: str
    period: _Time
    wcet: _Time
    cpu: int | None = None
    deadline: _Time | None = None
    jitter: _Time | None = None
    offset: _Time | None = None
    priority: int | None = None
    requests: Sequence[Request] = field(default=())


class TaskSet:
    """A system of tasks and resources, as one task-set file describes it.

    It is immutable and can be pickled. The text of the file is `text`.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        *,
        resources: Iterable[Resource] = (),
        cpus: int | None = None,
        name: str = "system",
        protocol: str | None = None,
        scheduler: str | None = None,
        priorities: str | None = None,
    ) -> None:
        """Create a task set. Resources that tasks request and that are not in `resources` are added.

        Without `cpus`, the platform has as many processors as the tasks use. Raises `BadInput` if the system is invalid.
        """
        tasks = list(tasks)
        if cpus is None:
            cpus = 1 + max((task.cpu or 0 for task in tasks), default=0)
        self._set(_written(tasks, list(resources), cpus, name, protocol, scheduler, priorities), name)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> TaskSet:
        """Read a task-set file. Raises `BadInput` with line and column of each fault, and `OSError`."""
        with open(path, "rb") as file:
            source = file.read()
        return cls._of(source, os.fspath(path))

    @classmethod
    def parse(cls, text: str) -> TaskSet:
        """Read the text of a task-set file. Raises `BadInput` with line and column of each fault."""
        return cls._of(text.encode(), "the text")

    @classmethod
    def _of(cls, source: bytes, file: str) -> TaskSet:
        found = cls.__new__(cls)
        found._set(source, file)
        return found

    def _set(self, source: bytes, file: str) -> None:
        system, faults = _lockwright.parse(source)
        if system is None:
            raise BadInput([Fault(message, help, file, line, column) for message, help, line, column in faults])
        self._source, self._file, self._system = source, file, system

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskSet._of, (self._source, self._file)

    @property
    def text(self) -> str:
        """The task-set file."""
        return self._source.decode()

    @property
    def name(self) -> str:
        """The name of the system; empty if the file gives none."""
        return str(self._system["name"])

    @property
    def cpus(self) -> int:
        """The number of processors."""
        return int(self._system["cpus"])

    @property
    def scheduler(self) -> str:
        """The scheduler: p-fp, p-edf, c-fp, g-fp or g-edf."""
        return str(self._system["scheduler"])

    @property
    def resources(self) -> list[str]:
        """The names of the resources. A group of resources is one."""
        return list(self._system["resources"])

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """The tasks as dictionaries, for example for a data frame. Times are in nanoseconds."""
        return [dict(task) for task in self._system["tasks"]]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the task-set file."""
        with open(path, "wb") as file:
            file.write(self._source)

    def __len__(self) -> int:
        return len(self._system["tasks"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskSet) and self._system == other._system and self._source == other._source

    def __hash__(self) -> int:
        return hash(self._source)

    def __repr__(self) -> str:
        return f"<TaskSet {self.name or self._file!r}: {len(self)} tasks on {self.cpus} CPUs under {self.scheduler}>"

    def _repr_html_(self) -> str:
        columns = ("name", "cpu", "priority", "period", "deadline", "wcet")
        rows = (
            (task["name"], task["cpu"], task["priority"], *(Duration(task[f"{key}_ns"]) for key in columns[3:]))
            for task in self._system["tasks"]
        )
        return html_table(columns, rows)


def html_table(columns: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A table for notebooks."""

    def line(tag: str, cells: Iterable[object]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', columns)}</thead><tbody>{body}</tbody></table>"


def _time(value: _Time | None) -> Duration | None:
    return None if value is None else Duration(value)


def _written(
    tasks: list[Task],
    resources: list[Resource],
    cpus: int,
    name: str,
    protocol: str | None,
    scheduler: str | None,
    priorities: str | None,
) -> bytes:
    lines = toml_lines([("name", name), ("protocol", protocol)])
    lines += ["", "[platform]", *toml_lines([("cpus", cpus), ("scheduler", scheduler), ("priorities", priorities)])]
    # A name that is there twice is a fault of the file.
    known = {resource.name for resource in resources}
    requested = dict.fromkeys(request.resource for task in tasks for request in task.requests)
    for resource in [*resources, *(Resource(name) for name in requested if name not in known)]:
        keys = ("name", "protocol", "ceiling", "cutoff", "home", "group", "object")
        lines += ["", "[[resource]]", *toml_lines((key, getattr(resource, key)) for key in keys)]
    for task in tasks:
        lines += ["", "[[task]]", *toml_lines([("name", task.name), ("cpu", task.cpu), ("priority", task.priority)])]
        times = ("period", "deadline", "jitter", "offset", "wcet")
        lines += toml_lines((key, _time(getattr(task, key))) for key in times)
        if task.requests:
            entries = (
                f"{{ resource = {toml(request.resource)}, count = {int(request.count)}, "
                f"length = {toml(Duration(request.length))} }}"
                for request in task.requests
            )
            lines.append(f"requests = [{', '.join(entries)}]")
    return ("\n".join(lines) + "\n").encode()
