"""The command `lockwright`."""

import os
import signal
import sys

from . import _lockwright


def main() -> int:
    """Execute the command line of this process, and return its exit status."""
    # `study --dask` starts an interpreter that has this package.
    os.environ.setdefault("LOCKWRIGHT_PYTHON", sys.executable)
    # The command handles its signals itself. An ignored one stays ignored.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    again = [sys.executable, "-P", "-m", "lockwright"]
    return _lockwright.main(["lockwright", *map(os.fsdecode, sys.argv[1:])], again)


if __name__ == "__main__":
    sys.exit(main())
