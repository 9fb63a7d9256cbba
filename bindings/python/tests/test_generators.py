"""The generators against references: distributions of scipy, other generators, and numpy's random numbers."""

import random
import signal
import time
import tomllib

import pytest

import lockwright as lw
from lockwright import _lockwright
from lockwright._plan import PROTOCOLS

scipy_stats = pytest.importorskip("scipy.stats")

COUNT = 4_000
LEAST = 1e-3
"""A distance is a fault if a correct generator has it with a lower probability than this."""

SETTINGS = [
    ([(0, 0.1), (0, 0.5), (0, 1)], 1.0),
    ([(0, 0.1), (0.1, 0.3), (0, 0.5), (0.2, 0.9), (0, 1)], 1.4),
    ([(0, 0.1), (0.1, 0.3), (0, 0.5), (0.2, 0.9), (0, 1)], 2.4),
]


def least_p(one, other):
    """The least probability over the coordinates, with Bonferroni's correction, that both have one distribution."""
    columns = list(zip(zip(*one, strict=True), zip(*other, strict=True), strict=True))
    return min(scipy_stats.ks_2samp(a, b).pvalue for a, b in columns) * len(columns)


@pytest.mark.parametrize(("limits", "total"), SETTINGS)
def test_fixed_sums_have_the_distribution_of_convolutional_fixed_sum(limits, total):
    reference = pytest.importorskip("convolutionalfixedsum")
    low, high = map(list, zip(*limits, strict=True))
    ours = lw.generators.fixed_sum(limits, total, count=20_000, seed=1)
    assert all(abs(sum(drawn) - total) < 1e-12 for drawn in ours)
    random.seed(1)
    # The form that its authors recommend. It takes milliseconds for each vector.
    numerical = [reference.cfsn(len(limits), total, low, high) for _ in range(400)]
    assert least_p(ours, numerical) > LEAST
    # The mutant: uniform numbers within the limits, scaled to the sum, and drawn again if one is outside.
    mutant = []
    while len(mutant) < COUNT:
        drawn = [random.uniform(least, most) for least, most in limits]
        drawn = [value * total / sum(drawn) for value in drawn]
        if all(least <= value <= most for value, (least, most) in zip(drawn, limits, strict=True)):
            mutant.append(drawn)
    assert least_p(ours, mutant) < LEAST


def test_the_analytical_reference_misses_vectors_near_the_greatest_sum():
    """docs/errata.md: (0.1, 0.1, 0.5, 0.8, 0.9) has this sum, and `cfsa` draws no second value below 0.2."""
    reference = pytest.importorskip("convolutionalfixedsum")
    for (limits, total), is_right in zip(SETTINGS, [True, True, False], strict=True):
        low, high = map(list, zip(*limits, strict=True))
        ours = lw.generators.fixed_sum(limits, total, count=20_000, seed=1)
        analytical = [reference.cfsa(len(limits), total, low, high) for _ in range(COUNT)]
        assert (least_p(ours, analytical) > LEAST) == is_right
    assert min(drawn[1] for drawn in ours) < 0.11 and min(drawn[1] for drawn in analytical) > 0.19


def test_dirichlet_rescale_is_not_uniform():
    """docs/errata.md."""
    drs = pytest.importorskip("drs").drs
    limits, total = SETTINGS[1]
    low, high = map(list, zip(*limits, strict=True))
    random.seed(1)
    drawn = [drs(len(limits), total, high, low) for _ in range(8_000)]
    assert least_p(lw.generators.fixed_sum(limits, total, count=20_000, seed=1), drawn) < LEAST


def test_wrong_limits_are_refused():
    for limits, total in [([], 0.0), ([(0, 0.5)], 0.6), ([(0.5, 0.4)], 0.45)]:
        with pytest.raises(ValueError, match="limits"):
            lw.generators.fixed_sum(limits, total)


@pytest.mark.parametrize("count", [10**12, 10**18])
def test_a_signal_stops_a_draw_of_any_size(count):
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        lw.generators.fixed_sum([(0, 1), (0, 1)], 1.0, count=count)
    assert time.monotonic() - begin < 10


def test_numbers_out_of_range_are_refused():
    limits = [(0, 1), (0, 1)]
    for numbers in ({"count": -1}, {"seed": -1}, {"seed": 1 << 64}, {"count": 1 << 64}):
        with pytest.raises(ValueError, match=f"{[*numbers][0]} is"):
            lw.generators.fixed_sum(limits, 1.0, **numbers)
    generator = lw.generators.Generator(tasks=2, load=0.5)
    for numbers in ({"seed": -1}, {"sample": -1}, {"seed": 1 << 64}):
        with pytest.raises(lw.BadInput, match=f"{[*numbers][0]} is"):
            generator.draw(**numbers)


def utilizations(name, load, **values):
    """Utilizations of single tasks. The last ones of a system are left out: the system ends where the load is reached."""
    generator = lw.generators.Generator(cpus=64, tasks=200, load=load, utilizations=name, **values)
    systems = [generator.draw(seed=3, sample=sample) for sample in range(40)]
    return [task for system in systems for task in system.tasks[:100]]


def test_classes_of_utilizations_and_periods_have_the_distributions_of_scipy():
    uniform = scipy_stats.uniform
    mean, least, most = 0.25, 0.1, 0.4
    exponential = scipy_stats.truncexpon((most - least) / mean, loc=least, scale=mean)
    for name, distribution in [
        ("uniform-low", uniform(0.001, 0.099)),
        ("uniform-medium", uniform(0.1, 0.3)),
        ("exponential-medium", exponential),
    ]:
        tasks = utilizations(name, 1, periods={"log-uniform": ["10 ms", "1 s"]})
        drawn = [task["wcet_ns"] / task["period_ns"] for task in tasks]
        assert scipy_stats.kstest(drawn, distribution.cdf).pvalue > LEAST, name
        periods = [task["period_ns"] / 1e6 for task in tasks]
        assert scipy_stats.kstest(periods, scipy_stats.loguniform(10, 1_000).cdf).pvalue > LEAST
    # The mutants: other distributions.
    assert scipy_stats.kstest(drawn, uniform(0.1, 0.3).cdf).pvalue < LEAST
    assert scipy_stats.kstest(periods, uniform(10, 990).cdf).pvalue < LEAST


def test_words_are_those_of_numpy():
    numpy = pytest.importorskip("numpy")
    for seed, cell, sample, part in [(0, 0, 0, 0), (7, 2**64 - 1, 3, 2), (2**63, 1, 10**12, 1)]:
        key, counter = (numpy.array(words, dtype=numpy.uint64) for words in ([seed, cell], [0, sample, part, 0]))
        bits = numpy.random.Philox(key=key, counter=counter)
        assert _lockwright.words(seed, cell, sample, part, 9) == [int(word) for word in bits.random_raw(9)]


def test_systems_are_those_that_a_study_judges(tmp_path):
    """With a load that no system can have, and one that all can have, the systems of a cell show in its utilization."""
    generator = lw.generators.Generator(cpus=2, tasks=6, sections={"accesses": 2, "lengths": "short"})
    study = lw.Study(generator, {"load": [0.3, 0.6], "protocol": ["mpcp", "msrp"]}, samples=20, seed=9)
    rows = study.run(tmp_path / "out").rows()
    assert len(rows) == 4 and {row["protocol"] for row in rows} == {"mpcp", "msrp"}
    for load in (0.3, 0.6):
        cell = lw.generators.Generator(cpus=2, tasks=6, load=load, sections={"accesses": 2, "lengths": "short"})
        systems = [cell.draw(seed=9, sample=sample) for sample in range(20)]
        for protocol in ("mpcp", "msrp"):
            accepted = sum(lw.check(system, protocol=protocol).schedulable for system in systems)
            [row] = [row for row in rows if row["load"] == load and row["protocol"] == protocol]
            assert row["accepted"] == accepted
    assert cell.draw(seed=9, sample=3) == systems[3] != cell.draw(seed=8, sample=3)


def test_clusters_vary_in_a_study(tmp_path):
    values, sections = {"cpus": 4, "tasks": 12, "load": 0.35}, {"accesses": 2, "lengths": "long"}
    over = {"cluster": [1, 2, 4], "scheduler": ["c-fp"], "protocol": ["omlp", "mpcp"]}
    study = lw.Study(lw.generators.Generator(**values, sections=sections), over, samples=20, seed=3)
    rows = study.run(tmp_path / "out").rows()
    assert [row["cluster"] for row in rows] == [1, 2, 4] and {row["protocol"] for row in rows} == {"omlp"}
    for row in rows:
        cell = lw.generators.Generator(**values, cluster=row["cluster"], sections=sections)
        systems = [cell.draw(seed=3, sample=sample) for sample in range(20)]
        assert row["accepted"] == sum(lw.check(system, protocol="omlp").schedulable for system in systems)
    assert rows[0]["accepted"] > rows[2]["accepted"] > 0
    with pytest.raises(lw.BadInput, match="c-fp has none of the protocols mpcp"):
        lw.Study(lw.generators.Generator(**values, sections=sections), {**over, "protocol": ["mpcp"]})
    objects = {"scheduler": ["p-fp", "p-edf", "g-edf"], "protocol": ["mpcp", "lock_free", "fmlp_long"]}
    made = tomllib.loads(lw.Study(lw.generators.Generator(**values, sections=sections), objects).text)["method"]
    expected = [objects["protocol"], None, ["lock_free"], ["lock_free", "fmlp_long"]]
    assert [method.get("protocols") for method in made] == expected
    locks = {"scheduler": ["p-edf"], "protocol": ["mpcp"]}
    made = tomllib.loads(lw.Study(lw.generators.Generator(**values, sections=sections), locks).text)["method"]
    assert made == [{"scheduler": "p-edf"}]
    with pytest.raises(lw.BadInput, match="cannot be divided into clusters of 3"):
        lw.generators.Generator(**values, cluster=3).draw()


def test_schedulers_have_the_protocols_that_the_command_accepts(tmp_path):
    generator = lw.generators.Generator(cpus=2, tasks=2, load=0.1, sections={"accesses": 1, "lengths": "short"})
    names = {name for names in PROTOCOLS.values() for name in names} | {"mpcp", "msrp", "pip", "phase_fair"}

    def accepts(scheduler, protocol):
        study = lw.Study(generator, methods=[{"scheduler": scheduler, "protocols": [protocol]}], samples=1, seed=1)
        try:
            study.run(tmp_path / scheduler / protocol)
        except lw.BadInput as error:
            assert f"protocol of studies under {scheduler}" in str(error)
            return False
        return True

    for scheduler, known in PROTOCOLS.items():
        assert {name for name in names if accepts(scheduler, name)} == set(known)


def test_the_generator_of_a_paper_fits_into_a_study(tmp_path):
    generator = lw.generators.rtas2008(m=4, utilizations="uniform-medium", section=None)
    study = lw.Study(generator, {"lengths": ["1 us", "14 us"], "protocol": ["fmlp_short", "fmlp_long"]}, samples=5, seed=4)
    result = study.run(tmp_path / "out")
    assert [row["lengths"] for row in result.rows()] == ["1 us", "1 us", "14 us", "14 us"]
    assert result.plot()._repr_svg_().startswith("<svg") and "fmlp_long" in result._repr_html_()


def test_methods_have_overheads_beside_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "costs.toml").write_text('context_switch = "20 us"\n')
    generator = lw.generators.Generator(tasks=5, load=0.5)
    methods = [{"scheduler": "p-edf"}, {"scheduler": "p-edf", "overheads": "costs.toml"}]
    assert len(lw.Study(generator, methods=methods, samples=5, seed=1).run("out").rows()) == 2
    with pytest.raises(lw.BadInput, match="working directory"):
        lw.Study(generator, methods=[{"overheads": "/costs.toml"}], samples=5).run("other")


def test_wrong_generators_are_refused():
    Generator = lw.generators.Generator
    with pytest.raises(lw.BadInput, match="no load"):
        Generator(tasks=3).draw()
    with pytest.raises(lw.BadInput, match="taks") as caught:
        Generator(taks=3, load=0.5).draw()
    assert [fault.line for fault in caught.value.faults] == [1, 2]
    with pytest.raises(lw.BadInput, match="cannot have a utilization"):
        Generator(cpus=4, tasks=3, load=1).draw()
    with pytest.raises(lw.BadInput, match="neither a number nor text"):
        Generator(tasks=object(), load=0.5).draw()
    with pytest.raises(lw.BadInput, match="limits allow"):
        Generator(tasks=3, load=1, cpus=2, utilizations={"convolutional-fixed-sum": [[0, 0.5]]}).draw()


def test_limits_come_in_turn():
    limits = {"convolutional-fixed-sum": [[0.05, 0.1], [0.2, 0.6]]}
    drawn = lw.generators.Generator(cpus=2, tasks=5, load=0.5, utilizations=limits).draw(seed=2).tasks
    shares = {task["name"]: task["wcet_ns"] / task["period_ns"] for task in drawn}
    assert abs(sum(shares.values()) - 1) < 1e-4
    for index, name in enumerate(sorted(shares)):
        least, most = limits["convolutional-fixed-sum"][index % 2]
        assert least - 1e-6 < shares[name] < most + 1e-6
