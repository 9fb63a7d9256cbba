"""The first steps of the package response-time-analysis: two tasks under fixed priorities and under EDF."""

import lockwright as lw

one = lw.Task("one", period="5 ms", wcet="1 ms", priority=2)
two = lw.Task("two", period="10 ms", wcet="6 ms", deadline="9 ms", priority=1)
print("fixed priorities:", lw.check(lw.TaskSet([one, two]))["two"].response)
one = lw.Task("one", period="5 ms", wcet="1 ms")
two = lw.Task("two", period="10 ms", wcet="6 ms", deadline="9 ms")
print("EDF:", lw.check(lw.TaskSet([one, two], scheduler="p-edf"))["two"].response)
