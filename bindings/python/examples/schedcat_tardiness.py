"""SchedCAT's introduction: three tasks under global EDF on two and on three processors, and how late they are."""

import lockwright as lw

tasks = [lw.Task(name, period="3 ms", wcet="2 ms") for name in "abc"]
for cpus in (2, 3):
    result = lw.check(lw.TaskSet(tasks, cpus=cpus, scheduler="g-edf"))
    late = max(lw.Duration(max(0, -(task.slack or 0))) for task in result.best)
    print(f"{cpus} CPUs: schedulable {result.schedulable}, tardiness {late}")
