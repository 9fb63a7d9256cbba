"""The examples of other tools, translated: each runs as it is, and agrees with the tool where both define the same."""

import random
import runpy
from itertools import pairwise
from pathlib import Path

import pytest

import lockwright as lw

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def lines_of(name, capsys, monkeypatch, folder):
    monkeypatch.chdir(folder)
    runpy.run_path(str(EXAMPLES / name))
    return capsys.readouterr().out.splitlines()


def test_each_example_has_a_test_and_few_lines():
    tested = Path(__file__).read_text(encoding="utf-8")
    for example in EXAMPLES.glob("*.py"):
        lines = [line for line in example.read_text(encoding="utf-8").splitlines() if line and not line.startswith('"""')]
        assert f'lines_of("{example.name}"' in tested and len(lines) <= 10, example


def test_schedcat_tardiness(capsys, monkeypatch, tmp_path):
    """SchedCAT prints False, True, and a tardiness of 2."""
    lines = lines_of("schedcat_tardiness.py", capsys, monkeypatch, tmp_path)
    assert lines == ["2 CPUs: schedulable False, tardiness 2 ms", "3 CPUs: schedulable True, tardiness 0 ns"]


def test_schedcat_example(capsys, monkeypatch, tmp_path):
    rows = [line.split() for line in lines_of("schedcat_example.py", capsys, monkeypatch, tmp_path)]
    assert len(rows) == 4 * 3 and (tmp_path / "schedcat_example/results.csv").exists()
    for protocol in {row[1] for row in rows}:
        shares = [float(share) for _, name, share in rows if name == protocol]
        assert shares[0] > 0.9 and all(one >= other for one, other in pairwise(shares)), (protocol, shares)


def test_simso_generator(capsys, monkeypatch, tmp_path):
    lines = lines_of("simso_generator.py", capsys, monkeypatch, tmp_path)
    assert [line.split()[0] for line in lines] == ["0", "1", "2"] and all(int(line.split()[1]) > 80 for line in lines)


def test_the_generator_has_the_distributions_of_simso():
    """Both distributions of utilizations, and log-uniform periods, by a Kolmogorov–Smirnov test."""
    simso = pytest.importorskip("simso.generator.task_generator")
    statistics, numpy = pytest.importorskip("scipy.stats"), pytest.importorskip("numpy")
    random.seed(1)
    numpy.random.seed(1)
    count, tasks, total = 1_500, 8, 1.5
    # The functions `gen_...` of this version exchange the sum and the number of tasks.
    theirs = {
        "uunifast-discard": simso.UUniFastDiscard(tasks, total, count),
        "rand-fixed-sum": simso.StaffordRandFixedSum(tasks, total, count),
    }
    periods = simso.gen_periods_loguniform(count * tasks, 1, 10, 100)[0]

    def ours(utilizations, load=total / 2):
        range_of = {"log-uniform": ["10 ms", "100 ms"]}
        generator = lw.generators.Generator(cpus=2, tasks=tasks, load=load, utilizations=utilizations, periods=range_of)
        return [task for sample in range(count) for task in generator.draw(seed=1, sample=sample).tasks]

    for name, sets in theirs.items():
        drawn = ours(name)
        shares = [task["wcet_ns"] / task["period_ns"] for task in drawn]
        flat = [value for one in sets for value in one]
        assert statistics.ks_2samp(shares, flat).pvalue > 1e-3, name
        assert statistics.ks_2samp([task["period_ns"] / 1e6 for task in drawn], periods).pvalue > 1e-3, name
    # The mutant: another load.
    mutant = [task["wcet_ns"] / task["period_ns"] for task in ours("rand-fixed-sum", load=0.7)]
    assert statistics.ks_2samp(mutant, flat).pvalue < 1e-3


def test_response_time_analysis(capsys, monkeypatch, tmp_path):
    lines = lines_of("response_time_analysis.py", capsys, monkeypatch, tmp_path)
    assert lines == ["fixed priorities: 8 ms", "EDF: 7 ms"]


def test_the_bounds_equal_those_of_response_time_analysis():
    """Every task of 100 random sets, under fixed priorities and under EDF."""
    peer = pytest.importorskip("response_time_analysis")
    model = pytest.importorskip("response_time_analysis.model")
    generator = lw.generators.Generator(tasks=5, load=0.8, periods={"uniform": ["10 ns", "200 ns"]})
    compared = 0
    for sample in range(100):
        tasks = generator.draw(seed=2, sample=sample).tasks
        made = [
            model.Task(
                model.Periodic(period=task["period_ns"]),
                model.FullyPreemptive(model.WCET(task["wcet_ns"])),
                model.Deadline(task["deadline_ns"]),
                model.Priority(task["priority"]),
            )
            for task in tasks
        ]
        for scheduler, analysis in (("p-fp", peer.fp), ("p-edf", peer.edf)):
            own = [lw.Task(task["name"], period=task["period_ns"], wcet=task["wcet_ns"]) for task in tasks]
            if scheduler == "p-fp":
                own = [lw.Task(one.name, one.period, one.wcet, priority=task["priority"]) for one, task in zip(own, tasks, strict=True)]
            result = lw.check(lw.TaskSet(own, scheduler=scheduler))
            for task, other in zip(tasks, made, strict=True):
                bound = result[task["name"]].response
                found = analysis.rta(model.taskset(*made), other, model.IdealProcessor())
                if bound is not None and bound <= task["deadline_ns"]:
                    compared += 1
                    assert found.bound_found() and found.response_time_bound == bound, (scheduler, sample, task)
    assert compared > 500
