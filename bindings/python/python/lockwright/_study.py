"""Studies of generated systems, on one machine or on many."""

from __future__ import annotations

import csv
import json
import os
import secrets
import tempfile
import tomllib
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, as_completed
from pathlib import Path
from typing import Any

from ._command import HOLDS, Completed, command
from ._errors import BadInput, Error, Fault, Refused
from ._schedule import Schedule
from ._tasks import html_table

_Path = str | os.PathLike[str]


class StudyResult:
    """The directory of a finished study."""

    def __init__(self, folder: _Path) -> None:
        """Open the directory of a finished study. Raises `OSError` if it has no results."""
        self.folder = Path(folder)
        self.manifest: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text("utf-8"))
        self._rows = _table(self.folder / "results.csv")
        self._kinds = {key: _kind(key) for key in (self._rows[0] if self._rows else {})}

    def rows(self) -> list[dict[str, Any]]:
        """A row for each cell and method. An empty value is `None`.

        The types of the others are those of the columns in ``results.parquet``, whatever the values are.
        """
        return [{key: self._kinds[key](text) if text else None for key, text in row.items()} for row in self._rows]

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`. Needs the extra ``lockwright[pandas]``."""
        import pandas

        types = {key: {int: "int64", float: "float64"}[kind] for key, kind in self._kinds.items() if kind is not str}
        return pandas.DataFrame(self.rows()).astype(types)

    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`. Needs the extra ``lockwright[polars]``."""
        import polars

        types: dict[type, Any] = {int: polars.Int64, float: polars.Float64, str: polars.String}
        return polars.DataFrame(self.rows(), schema={key: types[kind] for key, kind in self._kinds.items()})

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`, from ``results.parquet``. Needs the extra ``lockwright[arrow]``.

        Raises `BadInput` if the file is damaged.
        """
        import pyarrow
        from pyarrow import parquet

        path = self.folder / "results.parquet"
        try:
            return parquet.read_table(path)
        except (pyarrow.ArrowException, OSError) as error:
            help = "call the study again with the same arguments: it writes the file again from what is finished"
            raise BadInput([Fault(f"the results cannot be read: {error}", help, os.fspath(path))]) from error

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for every library that reads Arrow data. Needs the extra ``lockwright[arrow]``."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @property
    def plots(self) -> dict[str, Schedule]:
        """The figures by name; a notebook shows each."""
        files = sorted((self.folder / "plots").glob("*.svg"))
        return {file.stem: Schedule(file.read_text("utf-8")) for file in files}

    def plot(self, name: str | None = None) -> Schedule:
        """Return a figure by its name, or the first one; a notebook shows it. Raises `KeyError` if there is none."""
        plots = self.plots
        if name is None and plots:
            return next(iter(plots.values()))
        return plots[name or "the first figure"]

    @property
    def conclusions(self) -> list[dict[str, str]]:
        """The conclusions of a published study: number, verdict, conclusion and evidence. Empty for other studies."""
        path = self.folder / "conclusions.csv"
        return _table(path) if path.exists() else []

    def __repr__(self) -> str:
        return f"<StudyResult {self.manifest['study']!r} in {str(self.folder)!r}>"

    def _repr_html_(self) -> str:
        columns = list(self._rows[0]) if self._rows else []
        return html_table(columns, (row.values() for row in self._rows))


def _table(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def study(
    file: _Path,
    out: _Path,
    *,
    executor: Any = None,
    shares: int = 32,
    samples: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    told: Callable[[int, int], None] | None = None,
) -> StudyResult:
    """Execute the study in `file`, and write its results into the directory `out`.

    Without `executor`, all processors of this machine work. `executor` is any `concurrent.futures.Executor`, such as that
    of loky, or a Dask ``Client``: the study is cut into `shares`, which should take a second or more each. The results
    have the same bytes whatever executes them. A study that was interrupted continues when it is called again with the
    same arguments. After each share, `told` is called with the numbers of finished and of all shares.

    Raises `BadInput` and `Refused`, also if a worker dies, and the other exceptions of the executor.
    """
    files = _files(Path(file)) if executor is not None else {}
    if executor is not None and seed is None and "seed" not in tomllib.loads(files[Path(file).name].decode()):
        # All shares need the same seed, also those of an earlier call.
        seed = _seed_of(out)
    words = ["study", os.fspath(file)]
    return execute(
        words, files, out, executor=executor, shares=shares, samples=samples, seed=seed, jobs=jobs, told=told
    )


def execute(
    words: list[str],
    files: dict[str, bytes],
    out: _Path,
    *,
    executor: Any,
    shares: int,
    samples: int | None,
    seed: int | None,
    jobs: int | None,
    told: Callable[[int, int], None] | None = None,
) -> StudyResult:
    """Execute the command `words`, whose second one is the study file if there are `files`. Calls `told` after shares."""
    options = [f"--{key}={value}" for key, value in (("samples", samples), ("seed", seed)) if value is not None]
    if executor is None:
        threads = [] if jobs is None else [f"--jobs={jobs}"]
        _succeed(command(*words, "-o", out, "--resume", *options, *threads, isolated=True))
        return StudyResult(out)
    if shares < 1:
        raise BadInput([Fault(f"a study has at least one share, and not {shares}")])
    finish = (*words, "-o", out, "--resume", "--share=0/1", *options)
    # This refuses what is invalid, and makes the directory.
    _succeed(command(*finish))
    parts = Path(out) / "parts"
    if not _is_complete(out):
        _judge(executor, files, [*words, *options], shares, parts, told)
    _succeed(command(*finish))
    if not _is_complete(out):
        # Shares count as stored, but their parts do not belong to this study.
        for mark in parts.glob("share-*-of-*"):
            mark.unlink()
        message = f"parts of the study in {parts} are missing, or are those of another version"
        raise Refused([Fault(message, "call the study again, with the same version of lockwright on all workers")])
    return StudyResult(out)


def _is_complete(out: _Path) -> bool:
    return bool(json.loads((Path(out) / "manifest.json").read_text("utf-8"))["complete"])


_WHOLE = {"cpus", "cluster", "tasks", "accesses", "degree", "resources", "requests"}
_WHOLE |= {"figure", "x", "samples", "accepted", "schedulable"}
_NUMBERS = {"load", "probability", "reads", "share", "low", "high", "weighted", "tardiness_us", "background"}


def _kind(column: str) -> type[int] | type[float] | type[str]:
    """The type of the values of a column of results."""
    return int if column in _WHOLE else float if column in _NUMBERS else str


def _files(file: Path) -> dict[str, bytes]:
    """The study file and the overheads files beside it, by name."""
    source = file.read_bytes()
    files = {file.name: source}
    try:
        read = tomllib.loads(source.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput([Fault(f"{error}", file=os.fspath(file))]) from None
    methods = read.get("method", [])
    for method in methods if isinstance(methods, list) else []:
        name = method.get("overheads") if isinstance(method, dict) else None
        if isinstance(name, str) and (file.parent / name).is_file():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                message = f"an executor needs the overheads file {name!r} beside the study file, or in a folder there"
                raise BadInput([Fault(message, "move it there", os.fspath(file))])
            files[name] = (file.parent / name).read_bytes()
    return files


def _seed_of(out: _Path) -> int:
    try:
        return int(json.loads((Path(out) / "manifest.json").read_text("utf-8"))["seed"])
    except (OSError, ValueError, KeyError):
        return secrets.randbits(63)


def _judge(
    executor: Any, files: dict[str, bytes], words: list[str], shares: int, parts: Path, told: Callable[[int, int], None] | None
) -> None:
    """Judge the shares that are not in `parts`, and store each as it is finished."""
    if hasattr(executor, "get_executor"):
        # A Dask client: a worker that dies is replaced, and its shares are executed again.
        executor = executor.get_executor(pure=False, retries=3)
    # A file without contents says that a share is stored.
    marks = {number: parts / f"share-{number}-of-{shares}" for number in range(1, shares + 1)}
    left = [number for number, mark in marks.items() if not mark.exists()]
    futures: dict[Future[dict[str, bytes]], int] = {}
    try:
        for number in left:
            futures[executor.submit(judge_share, files, words, f"{number}/{shares}")] = number
        for done, future in enumerate(as_completed(futures), shares - len(left) + 1):
            _store(parts, future.result(), marks[futures[future]])
            if told is not None:
                told(done, shares)
    except Exception as error:
        if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
            help = "what is finished is kept; call the study again with the same arguments to continue it"
            raise Refused([Fault(f"a worker died: {error}", help)]) from error
        raise
    finally:
        for future in futures:
            future.cancel()


def judge_share(files: dict[str, bytes], words: list[str], share: str) -> dict[str, bytes]:
    """Judge one share of a study in a directory of its own, and return its parts by name. Executors call this."""
    with tempfile.TemporaryDirectory(prefix="lockwright-") as temporary:
        folder = Path(temporary)
        for file, content in files.items():
            path = folder / "study" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        verb, name, *rest = words
        name = os.fspath(folder / "study" / Path(name).name) if files else name
        out = folder / "out"
        _succeed(command(verb, name, "-o", out, "--jobs=1", f"--share={share}", *rest))
        return {part.name: part.read_bytes() for part in (out / "parts").glob("*.json")}


def _store(folder: Path, parts: dict[str, bytes], mark: Path) -> None:
    """Write the parts of a share, and then its mark."""
    path = folder
    try:
        for name, content in parts.items():
            path, unfinished = folder / name, folder / f".unfinished-{name}"
            unfinished.write_bytes(content)
            unfinished.replace(path)
        path = mark
        mark.touch()
    except OSError as error:
        for left in folder.glob(".unfinished-*"):
            left.unlink(missing_ok=True)
        help = "free space or give write permission; call the study again with the same arguments to continue it"
        raise Refused([Fault(f"cannot write: {error.strerror}", help, os.fspath(path))]) from error


def _succeed(completed: Completed) -> None:
    if completed.status == HOLDS:
        return
    lines = [line for line in completed.err.splitlines() if line.startswith("error: ")]
    message = lines[0].removeprefix("error: ") if lines else completed.err.strip() or "the study did not end"
    kind = {2: BadInput, 3: Refused}.get(completed.status, Error)
    raise kind([Fault(message)])
