"""``python -m lockwright.cluster ADDRESS FILE OUT``: a study on a Dask cluster, for ``lockwright study --dask``.

It is interrupted when its standard input ends.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from ._command import INTERRUPTED, MACHINE, command
from ._errors import BadInput, Error, Fault
from ._study import study

SHARES_PER_WORKER = 16
"""Shares of each worker thread: enough that a slow one delays the end little."""


def main(arguments: list[str]) -> int:
    """Execute the study, print the table of its results, and return the exit status."""
    parser = argparse.ArgumentParser(prog="lockwright.cluster")
    parser.add_argument("address")
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--resume", action="store_true")
    chosen = parser.parse_args(arguments)
    # SIGTERM, as SIGINT may be ignored.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        threading.Thread(target=_interrupt_at_end, args=(threading.get_ident(),), daemon=True).start()
        _run(chosen)
    except Error as error:
        print(*(f"error: {fault}" for fault in error.faults), sep="\n", file=sys.stderr)
        return 2 if isinstance(error, BadInput) else MACHINE
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return MACHINE
    except KeyboardInterrupt:
        print(f"warning: interrupted; the finished shares are in {chosen.out}, and --resume continues", file=sys.stderr)
        return INTERRUPTED
    # The study is complete: this prints its table.
    options = [f"--{key}={value}" for key, value in (("seed", chosen.seed), ("samples", chosen.samples)) if value is not None]
    done = command("study", chosen.file, "-o", chosen.out, "--resume", *options)
    print(done.out, end="")
    return done.status


def _run(chosen: argparse.Namespace) -> None:
    import distributed

    connect: Any = distributed.Client

    if not chosen.resume and _is_unfinished(chosen.out):
        message = f"{chosen.out} has an unfinished run of this study"
        raise BadInput([Fault(message, "add --resume to continue it, or choose another directory")])
    with connect(chosen.address, timeout=30, set_as_default=False) as client:
        shares = _shares(chosen.out, max(1, sum(client.nthreads().values())) * SHARES_PER_WORKER)

        def told(done: int, shares: int) -> None:
            print(f"\r{done} of {shares} shares", end="\n" if done == shares else "", file=sys.stderr, flush=True)

        study(chosen.file, chosen.out, executor=client, shares=shares, samples=chosen.samples, seed=chosen.seed, told=told)


def _interrupt_at_end(main: int) -> None:
    """Interrupt the thread `main` when standard input ends: the command does not want the results any more."""
    while os.read(0, 1024):
        pass
    signal.pthread_kill(main, signal.SIGTERM)


def _is_unfinished(out: Path) -> bool:
    try:
        return not json.loads((out / "manifest.json").read_text("utf-8"))["complete"]
    except (OSError, ValueError, KeyError):
        return False


def _shares(out: Path, otherwise: int) -> int:
    """The number of shares of an earlier run, so that its finished ones count, or another number."""
    found = [mark.name.rpartition("-of-")[2] for mark in (out / "parts").glob("share-*-of-*")]
    return int(found[0]) if found and found[0].isdigit() else otherwise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
