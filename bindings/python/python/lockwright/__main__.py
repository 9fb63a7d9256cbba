"""The command `lockwright`."""

import os
import signal
import sys
import threading

from . import _lockwright
from ._command import WATCHED


def main() -> int:
    """Execute the command line of this process, and return its exit status."""
    # `study --dask` starts an interpreter that has this package.
    os.environ.setdefault("LOCKWRIGHT_PYTHON", sys.executable)
    watched = os.environ.pop(WATCHED, None)
    if watched is not None:
        threading.Thread(target=_end_with, args=(int(watched),), daemon=True).start()
    # The command handles its signals itself. An ignored one stays ignored.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    again = [sys.executable, "-P", "-m", "lockwright"]
    return _lockwright.main(["lockwright", *map(os.fsdecode, sys.argv[1:])], again)


def _end_with(pipe: int) -> None:
    """End this process when the pipe ends: who started it has ended, or does not want the results any more."""
    while os.read(pipe, 1):
        pass
    # Not SIGINT, which is ignored in the background of a script.
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
