"""Studies that a program describes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ._errors import BadInput, Fault
from ._study import StudyResult, _Path, study
from ._toml import toml_lines
from .generators import Generator


_OBJECTS = ("lock_free", "wait_free")
_GLOBAL = ("fmlp_short", "fmlp_long", *_OBJECTS)
PROTOCOLS: dict[str, tuple[str, ...]] = {"p-edf": _OBJECTS, "c-fp": ("omlp",), "g-edf": _GLOBAL, "g-fp": _GLOBAL}
"""The protocols of methods by scheduler; `p-fp` has all."""


class Study:
    """A study: a generator, the values that vary, and the methods that judge the systems.

    >>> import lockwright as lw
    >>> generator = lw.generators.Generator(cpus=4, tasks=20, sections={"accesses": 3, "lengths": "medium"})
    >>> over = {"load": [0.2, 0.4, 0.6], "protocol": ["mpcp", "msrp"]}
    >>> print(lw.Study(generator, over, samples=50, seed=4).text.splitlines()[0])
    name = "study"
    """

    def __init__(
        self,
        generator: Generator,
        over: Mapping[str, Iterable[Any]] | None = None,
        *,
        methods: Iterable[Mapping[str, Any]] = (),
        samples: int = 100,
        seed: int | None = None,
        x: str | None = None,
        name: str = "study",
    ) -> None:
        """Create a study of `samples` systems in each cell.

        `over` has the keys that vary, each with its values. The keys are those of ``[generator]`` and ``[sections]`` of
        a study file, and ``protocol`` and ``scheduler``. Each scheduler takes those of the protocols that it has, for
        example ``c-fp`` takes ``omlp``; `BadInput` is raised if it has none of them. Under ``p-edf``, locks are under
        SRP and MSRP, and objects are under ``lock_free`` and ``wait_free``, each as a method of its own. `methods` has
        further methods, each with the keys of ``[[method]]``. docs/study.md describes all of them. Without `seed`, each
        run draws one.
        """
        over = {key: list(values) for key, values in (over or {}).items()}
        protocols, schedulers = over.pop("protocol", []), over.pop("scheduler", [])
        made: list[dict[str, Any]] = []
        for scheduler in schedulers or (["p-fp"] if protocols else []):
            method: dict[str, Any] = {"scheduler": scheduler}
            # Under `p-fp`, and for an unknown scheduler, the command checks the names.
            fitting = [name for name in protocols if name in PROTOCOLS.get(scheduler, protocols)]
            if scheduler == "p-edf" and any(name not in fitting for name in protocols):
                # Its locks are under SRP and MSRP, whatever the others have.
                made.append(dict(method))
                if not fitting:
                    continue
            if protocols and not fitting:
                message = f"{scheduler} has none of the protocols {', '.join(map(str, protocols))}"
                raise BadInput([Fault(message, f"it has {', '.join(PROTOCOLS[scheduler])}; or give it in `methods`")])
            if fitting:
                method["protocols"] = fitting
            made.append(method)
        self._tables = (generator, over, [*made, *map(dict, methods)])
        self._head = {"name": name, "seed": seed, "samples": samples, "x": x}

    @property
    def text(self) -> str:
        """The study file."""
        generator, over, methods = self._tables
        lines = toml_lines(self._head.items())
        lines += ["", generator.text]
        if over:
            lines += ["[vary]", *toml_lines(over.items())]
        for method in methods:
            lines += ["", "[[method]]", *toml_lines(method.items())]
        return "\n".join(lines) + "\n"

    def write(self, path: _Path) -> None:
        """Write the study file."""
        Path(path).write_text(self.text, encoding="utf-8")

    def run(
        self, out: _Path, *, executor: Any = None, shares: int = 32, jobs: int | None = None
    ) -> StudyResult:
        """Execute the study, and write its results into the directory `out`. The arguments are those of `study`.

        The paths of overheads files are relative to the working directory.
        """
        with tempfile.TemporaryDirectory(prefix="lockwright-") as temporary:
            folder = Path(temporary)
            self.write(folder / "study.toml")
            for name in {method["overheads"] for method in self._tables[2] if "overheads" in method}:
                if Path(name).is_absolute() or ".." in Path(name).parts:
                    raise BadInput([Fault(f"the overheads file {name!r} is not below the working directory")])
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(name, folder / name)
            return study(folder / "study.toml", out, executor=executor, shares=shares, jobs=jobs)

    def __repr__(self) -> str:
        generator, over, methods = self._tables
        return f"Study({generator!r}, over={over!r}, methods={methods!r}, samples={self._head['samples']})"
