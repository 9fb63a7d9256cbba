"""Published studies, each as one object."""

from __future__ import annotations

from typing import Any

from ._study import StudyResult, _Path, execute


class PublishedStudy:
    """Figures of a published study. `run` repeats them."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        """Create a study from the arguments of ``lockwright study NAME``."""
        self._name, self._arguments = name, arguments

    def run(
        self,
        out: _Path,
        *,
        executor: Any = None,
        shares: int = 32,
        samples: int | None = None,
        seed: int | None = None,
        jobs: int | None = None,
    ) -> StudyResult:
        """Repeat the figures, and write the results into the directory `out`. The arguments are those of `study`."""
        command = ["study", self._name, *self._arguments]
        return execute(command, {}, out, executor=executor, shares=shares, samples=samples, seed=seed, jobs=jobs)

    def __repr__(self) -> str:
        return f"<PublishedStudy: lockwright study {' '.join([self._name, *self._arguments])}>"


class Rtas2008:
    """Real-Time Synchronization on Multiprocessors, RTAS 2008; docs/rtas2008.md describes the figures and the options."""

    def figure(self, *numbers: int, **options: str) -> PublishedStudy:
        """Return the study of these figures. An option such as ``nesting="never"`` is one of the command line."""
        return PublishedStudy("rtas2008", [f"--figure={','.join(map(str, numbers))}", *_words(options)])

    def all(self, **options: str) -> PublishedStudy:
        """Return the study of all figures that can be repeated."""
        return PublishedStudy("rtas2008", ["--all", *_words(options)])


def _words(options: dict[str, str]) -> list[str]:
    return [f"--{key}={value}" for key, value in options.items()]
