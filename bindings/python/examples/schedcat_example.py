"""SchedCAT's example of an experiment: its task sets with locks, from its generator to the share that each lock accepts."""

import lockwright as lw

sections = {"resources": 6, "probability": 0.1, "requests": 5, "lengths": "medium"}
periods = {"uniform": ["10 ms", "100 ms"]}
generator = lw.generators.Generator(cpus=12, tasks=100, utilizations="uniform-medium", periods=periods, sections=sections)
over = {"load": [0.5, 0.6, 0.7, 0.8], "protocol": ["fmlp_short", "mpcp", "fmlp_plus"]}
result = lw.Study(generator, over, samples=50, seed=1).run("schedcat_example")
for row in result.rows():
    print(row["load"], row["protocol"], row["share"])
