"""SimSo's generator: eight tasks with utilizations by UUniFast-discard and log-uniform periods, simulated for a second."""

import lockwright as lw

periods = {"log-uniform": ["10 ms", "100 ms"]}
generator = lw.generators.Generator(cpus=2, tasks=8, load=0.75, utilizations="uunifast-discard", periods=periods)
for sample in range(3):
    system = generator.draw(seed=1, sample=sample)
    result = lw.simulate(system, horizon="1 s")
    print(sample, sum(task.observed.jobs for task in result.best), sum(task.observed.misses for task in result.best))
