"""Real-time locking: bounds, simulation and execution of task sets that share resources.

>>> import lockwright as lw
>>> system = lw.TaskSet(
...     tasks=[
...         lw.Task("control", period="5 ms", wcet="1 ms", requests=[lw.Request("bus", "100 us")]),
...         lw.Task("logger", period="50 ms", wcet="9 ms", requests=[lw.Request("bus", "2 ms")]),
...     ],
... )
>>> result = lw.check(system, protocol="icpp")
>>> result.schedulable
True
>>> result["control"].response
Duration('3 ms')

Times are whole nanoseconds. A `Duration` is an `int` that prints with a unit; functions take a `Duration`, a number of
nanoseconds, or a string such as ``"1.5 ms"``.
"""

from . import generators, papers
from ._command import Completed, command
from ._errors import BadInput, Error, Fault, Refused
from ._lockwright import __version__
from ._plan import Study
from ._results import Bound, Observed, ProtocolResult, Results, Term
from ._schedule import Schedule
from ._study import StudyResult, study
from ._tasks import Request, Resource, Task, TaskSet
from ._time import Duration
from ._verbs import check, doctor, run, simulate, verify

__all__ = [
    "BadInput",
    "Bound",
    "Completed",
    "Duration",
    "Error",
    "Fault",
    "Observed",
    "ProtocolResult",
    "Refused",
    "Request",
    "Resource",
    "Results",
    "Schedule",
    "Study",
    "StudyResult",
    "Task",
    "TaskSet",
    "Term",
    "__version__",
    "check",
    "command",
    "doctor",
    "generators",
    "papers",
    "run",
    "simulate",
    "study",
    "verify",
]
