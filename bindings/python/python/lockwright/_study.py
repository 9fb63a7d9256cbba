"""Studies of generated systems, on one machine or on many."""

from __future__ import annotations

import csv
import json
import os
import re
import secrets
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from ._command import HOLDS, Completed, command
from ._errors import BadInput, Error, Fault, Refused
from ._schedule import Schedule

_Path = str | os.PathLike[str]


class StudyResult:
    """The directory of a finished study."""

    def __init__(self, folder: _Path) -> None:
        """Open the directory of a finished study. Raises `OSError` if it has no results."""
        self.folder = Path(folder)
        self.manifest: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text("utf-8"))
        with open(self.folder / "results.csv", encoding="utf-8", newline="") as file:
            self._rows = list(csv.DictReader(file))

    def rows(self) -> list[dict[str, Any]]:
        """A row for each cell and method. Numbers are numbers, and an empty value is `None`."""
        kinds = {key: _kind([row[key] for row in self._rows]) for key in (self._rows[0] if self._rows else {})}
        return [{key: kinds[key](text) if text else None for key, text in row.items()} for row in self._rows]

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`. Needs the extra ``lockwright[pandas]``."""
        import pandas

        return pandas.DataFrame(self.rows())

    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`. Needs the extra ``lockwright[polars]``."""
        import polars

        return polars.DataFrame(self.rows(), infer_schema_length=None)

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`. Needs the extra ``lockwright[arrow]``."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.rows())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for every library that reads Arrow data. Needs the extra ``lockwright[arrow]``."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @property
    def plots(self) -> dict[str, Schedule]:
        """The figures by name; a notebook shows each."""
        files = sorted((self.folder / "plots").glob("*.svg"))
        return {file.stem: Schedule(file.read_text("utf-8")) for file in files}

    def __repr__(self) -> str:
        return f"<StudyResult {self.manifest['study']!r} in {str(self.folder)!r}>"


def study(
    file: _Path,
    out: _Path,
    *,
    executor: Any = None,
    shares: int = 32,
    samples: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
) -> StudyResult:
    """Execute the study in `file`, and write its results into the directory `out`.

    Without `executor`, all processors of this machine work. `executor` is any `concurrent.futures.Executor`, or a Dask
    ``Client``: the study is cut into `shares`, which should take a second or more each. The results have the same bytes
    whatever executes them. A study that was interrupted continues when it is called again with the same arguments.

    Raises `BadInput` and `Refused`, and the exceptions of the executor.
    """
    options = [f"--{key}={value}" for key, value in (("samples", samples), ("seed", seed)) if value is not None]
    if executor is None:
        threads = [] if jobs is None else [f"--jobs={jobs}"]
        _succeed(command("study", file, "-o", out, "--resume", *options, *threads, isolated=True))
        return StudyResult(out)
    if shares < 1:
        raise BadInput([Fault(f"a study has at least one share, and not {shares}")])
    files = _files(Path(file))
    if seed is None and "seed" not in tomllib.loads(files[Path(file).name].decode()):
        # All shares need the same seed, also those of an earlier call.
        options.append(f"--seed={_seed_of(out)}")
    finish = ("study", file, "-o", out, "--resume", "--share=0/1", *options)
    _succeed(command(*finish))
    if not (Path(out) / "results.csv").exists():
        for parts in _parts(executor, files, Path(file).name, shares, options):
            _store(Path(out) / "parts", parts)
        _succeed(command(*finish))
    return StudyResult(out)


def _kind(texts: list[str]) -> Callable[[str], Any]:
    """The type of a column: that of all its values."""
    for kind, form in ((int, r"-?[0-9]+"), (float, r"-?[0-9]+(\.[0-9]+)?")):
        if all(re.fullmatch(form, text) for text in texts if text):
            return kind
    return str


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


def _parts(
    executor: Any, files: dict[str, bytes], name: str, shares: int, options: list[str]
) -> Iterator[dict[str, bytes]]:
    """The parts of all shares, as they are finished."""
    if hasattr(executor, "get_executor"):
        # A Dask client: a worker that dies is replaced, and its shares are executed again.
        executor = executor.get_executor(pure=False, retries=3)
    futures = [executor.submit(judge_share, files, name, f"{number}/{shares}", options) for number in range(1, shares + 1)]
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def judge_share(files: dict[str, bytes], name: str, share: str, options: list[str]) -> dict[str, bytes]:
    """Judge one share of a study in a directory of its own, and return its parts by name. Executors call this."""
    with tempfile.TemporaryDirectory(prefix="lockwright-") as temporary:
        folder = Path(temporary)
        for file, content in files.items():
            path = folder / "study" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        out = folder / "out"
        _succeed(command("study", folder / "study" / name, "-o", out, "--jobs=1", f"--share={share}", *options))
        return {part.name: part.read_bytes() for part in (out / "parts").glob("*.json")}


def _store(folder: Path, parts: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in parts.items():
        unfinished = folder / f".unfinished-{name}"
        unfinished.write_bytes(content)
        unfinished.replace(folder / name)


def _succeed(completed: Completed) -> None:
    if completed.status == HOLDS:
        return
    lines = [line for line in completed.err.splitlines() if line.startswith("error: ")]
    message = lines[0].removeprefix("error: ") if lines else completed.err.strip() or "the study did not end"
    kind = {2: BadInput, 3: Refused}.get(completed.status, Error)
    raise kind([Fault(message)])
