"""Studies on one core, on several, and on a cluster: the results have the same bytes."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

import lockwright as lw

STUDY = """
name = "small"
samples = 60
seed = 5

[generator]
cpus = 2
tasks = 8

[sections]
accesses = 2
lengths = "medium"

[vary]
load = [0.3, 0.6, 0.9]

[[method]]
protocols = ["mpcp", "fmlp_short"]

[[method]]
name = "charged"
protocols = ["mpcp"]
overheads = "costs.toml"
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "costs.toml").write_text('release = "10 us"\ncontext_switch = "20 us"\n')
    file = folder / "study.toml"
    file.write_text(STUDY)
    return file


def digest(folder):
    """A hash of all results; the manifest names the machine, and is none."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.name != "manifest.json")
    assert {"results.csv", "results.parquet"} <= {path.name for path in files}
    hashes = hashlib.sha256()
    for path in files:
        hashes.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return hashes.hexdigest()


@pytest.fixture(scope="module")
def expected(spec, tmp_path_factory):
    folder = tmp_path_factory.mktemp("one core")
    lw.study(spec, folder, jobs=1)
    return digest(folder)


def test_results_are_rows_frames_and_figures(spec, tmp_path):
    result = lw.study(spec, tmp_path / "out")
    rows = result.rows()
    assert len(rows) == 3 * 3 and {row["protocol"] for row in rows} == {"mpcp", "fmlp_short"}
    assert all(row["samples"] == 60 and 0 <= row["accepted"] <= 60 for row in rows)
    assert len(result.to_pandas()) == len(rows) and result.manifest["seed"] == 5
    assert all(plot._repr_svg_().startswith("<svg") for plot in result.plots.values()) and result.plots


@pytest.mark.parametrize("shares", [1, 7])
@pytest.mark.parametrize("executor", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_gives_the_same_bytes(spec, expected, tmp_path, executor, shares):
    with executor(2) as pool:
        lw.study(spec, tmp_path, executor=pool, shares=shares)
    assert digest(tmp_path) == expected


def test_another_seed_gives_other_bytes(spec, expected, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        lw.study(spec, tmp_path, executor=pool, shares=3, seed=6)
    assert digest(tmp_path) != expected


def test_loky_gives_the_same_bytes(spec, expected, tmp_path):
    loky = pytest.importorskip("loky")
    with loky.ProcessPoolExecutor(2) as pool:
        lw.study(spec, tmp_path, executor=pool, shares=5)
    assert digest(tmp_path) == expected


class Dies(ThreadPoolExecutor):
    """An executor whose third share fails."""

    def submit(self, fn, /, *args, **kwargs):
        if args[2].startswith("3/"):
            return super().submit(os.stat, "no such file")
        return super().submit(fn, *args, **kwargs)


def test_an_interrupted_study_continues(spec, expected, tmp_path):
    with Dies(1) as pool, pytest.raises(FileNotFoundError):
        lw.study(spec, tmp_path, executor=pool, shares=4)
    assert list((tmp_path / "parts").glob("*.json")) and not (tmp_path / "results.csv").exists()
    # Only the shares that are missing are executed.
    missing = 4 - len(list((tmp_path / "parts").glob("share-*-of-4")))
    told = []
    with ThreadPoolExecutor(1) as pool:
        lw.study(spec, tmp_path, executor=pool, shares=4, told=lambda *numbers: told.append(numbers))
    assert 1 <= missing < 4 and told == [(number, 4) for number in range(5 - missing, 5)]
    assert digest(tmp_path) == expected


class LosesAWorker(ProcessPoolExecutor):
    """An executor of which one process dies in the third share."""

    def submit(self, fn, /, *args, **kwargs):
        if args[2].startswith("3/"):
            return super().submit(os._exit, 9)
        return super().submit(fn, *args, **kwargs)


def test_a_worker_that_dies_loses_only_its_share(spec, expected, tmp_path):
    with LosesAWorker(1) as pool, pytest.raises(lw.Refused, match="a worker died.*same arguments"):
        lw.study(spec, tmp_path, executor=pool, shares=4)
    lw.study(spec, tmp_path)
    assert digest(tmp_path) == expected


class FillsTheDisk(ThreadPoolExecutor):
    """An executor after which the files of each share are on a device without space."""

    def __init__(self, parts):
        super().__init__(1)
        self.parts = parts

    def submit(self, fn, /, *args, **kwargs):
        def judge():
            found = fn(*args, **kwargs)
            for name in found:
                (self.parts / f".unfinished-{name}").symlink_to("/dev/full")
            return found

        return super().submit(judge)


def test_a_full_disk_keeps_the_finished_shares(spec, expected, tmp_path):
    with Dies(1) as pool, pytest.raises(FileNotFoundError):
        lw.study(spec, tmp_path, executor=pool, shares=4)
    parts = tmp_path / "parts"
    finished = {part.name for part in parts.glob("*.json")}
    full = "json: cannot write: No space left.*same arguments"
    with FillsTheDisk(parts) as pool, pytest.raises(lw.Refused, match=full):
        lw.study(spec, tmp_path, executor=pool, shares=1)
    assert finished and {part.name for part in parts.glob("*.json")} == finished
    assert not list(parts.glob(".unfinished-*"))
    with ThreadPoolExecutor(1) as pool:
        lw.study(spec, tmp_path, executor=pool, shares=4)
    assert digest(tmp_path) == expected


def test_a_parquet_file_that_is_cut_short_is_written_again(spec, expected, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    result = lw.study(spec, tmp_path)
    table = pyarrow.table(result)
    assert table.to_pylist() == result.rows()
    assert str(table.schema.field("load").type) == "double" and str(table.schema.field("accepted").type) == "int64"
    file = tmp_path / "results.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(lw.BadInput, match="results.parquet.*same arguments"):
        result.to_arrow()
    assert result.rows()
    lw.study(spec, tmp_path)
    assert digest(tmp_path) == expected and result.to_arrow() == table


def has_the_types_of_parquet(result):
    """Rows and frames of `result` have the types of its table, whatever its values are."""
    polars = pytest.importorskip("polars")
    named = {"int64": int, "double": float, "string": str}
    columns = {field.name: named[str(field.type)] for field in result.to_arrow().schema}
    rows = result.rows()
    assert [*rows[0]] == [*columns] and rows == result.to_arrow().to_pylist()
    assert all(value is None or type(value) is columns[key] for row in rows for key, value in row.items())
    types = {int: polars.Int64, float: polars.Float64, str: polars.String}
    in_pandas, in_polars = result.to_pandas().dtypes, result.to_polars().schema
    for key, kind in columns.items():
        assert in_polars[key] == types[kind]
        assert kind is str or str(in_pandas[key]) == {int: "int64", float: "float64"}[kind]


@pytest.mark.parametrize("sections", ['accesses = 2\n[vary]\ndegree = [1, 2]', 'probability = 1\n[vary]\nresources = [1]'])
def test_types_do_not_depend_on_values(tmp_path, sections):
    file = tmp_path / "study.toml"
    file.write_text(
        f"samples = 2\nseed = 1\n[generator]\n[sections]\n{sections}\nload = [1]\nreads = [0, 1]\ncpus = [1, 2]\n"
        'tasks = [4]\nlengths = ["10 us"]\n[[method]]\nname = "10"\nprotocols = ["phase_fair"]\n'
    )
    has_the_types_of_parquet(lw.study(file, tmp_path / "out"))


@pytest.mark.skipif(not os.environ.get("LOCKWRIGHT_REQUIRE_DASK"), reason="LOCKWRIGHT_REQUIRE_DASK is not set")
def test_a_dask_cluster_with_a_dying_worker_gives_the_same_bytes(spec, expected, tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=4, threads_per_worker=1, processes=True, protocol="tcp", dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        victims = list(client.run(os.getpid).values())

        def kill():
            time.sleep(0.3)
            os.kill(victims[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        lw.study(spec, tmp_path, executor=client, shares=24, samples=None)
        killer.join()
    assert digest(tmp_path) == expected


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers of Dask, each a process of its own, over TCP: the address and the workers."""
    if not os.environ.get("LOCKWRIGHT_REQUIRE_DASK"):
        pytest.skip("LOCKWRIGHT_REQUIRE_DASK is not set")
    place = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    common = ["--scheduler-file", place, "--no-dashboard"]

    def start(*arguments):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([*dask, *arguments, *common], cwd=tmp_path, **quiet)

    scheduler = start("scheduler", "--host", "tcp://127.0.0.1", "--port", "0")
    workers = [start("worker", "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny") for _ in range(2)]
    try:
        # The scheduler creates its file before it writes it.
        wait_for(lambda: place.exists() and place.read_text())
        yield json.loads(place.read_text())["address"], workers
    finally:
        for process in [*workers, scheduler]:
            process.kill()
            process.wait()


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_command_uses_a_cluster_that_loses_a_worker(spec, cluster, tmp_path):
    address, workers = cluster
    lw.study(spec, tmp_path / "alone", samples=4_000)
    out = tmp_path / "out"
    lockwright = Path(sys.executable).with_name("lockwright")
    arguments = [lockwright, "study", spec, "-o", out, "--samples", "4000", "--dask", address]
    command = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: command.poll() is not None or list(out.glob("parts/share-*")))
    assert command.poll() is None, "the study ended before a worker could die"
    workers[0].kill()
    printed, messages = command.communicate(timeout=300)
    assert command.returncode == 0, messages
    assert "small: 3 cells, 4000 systems each" in printed and "shares" in messages
    assert digest(out) == digest(tmp_path / "alone")
    # Without --resume, an unfinished study is refused.
    manifest = out / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"complete": true', '"complete": false'))
    again = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert again.returncode == 2 and "--resume" in again.stderr


def test_a_signal_to_the_command_alone_ends_a_study_on_a_cluster(spec, cluster, tmp_path):
    address, _ = cluster
    out = tmp_path / "out"
    lockwright = Path(sys.executable).with_name("lockwright")
    arguments = [lockwright, "study", spec, "-o", out, "--samples", "100000", "--dask", address]
    for stop, status in ((signal.SIGTERM, 130), (signal.SIGKILL, -9)):
        command = subprocess.Popen([*arguments, "--resume"], stderr=subprocess.PIPE, text=True)
        before = len(list(out.glob("parts/share-*")))
        wait_for(lambda: command.poll() is not None or len(list(out.glob("parts/share-*"))) > before)
        command.send_signal(stop)
        # The interpreter has the other end of the pipe, also after the command has ended.
        _, messages = command.communicate(timeout=60)
        assert command.returncode == status and "interrupted; the finished shares" in messages, messages


def test_ctrl_c_ends_a_study_in_a_process_of_its_own(spec, tmp_path):
    # Its handler of SIGINT restarts system calls.
    pytest.importorskip("polars")
    out = tmp_path / "out"

    def interrupt():
        wait_for(lambda: list(out.glob("parts/*.json")))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        lw.study(spec, out, samples=4_000_000)
    thread.join()
    # It has written the tables of what is finished, and would be killed before.
    assert (out / "results.csv").exists() and not lw._study.StudyResult(out).manifest["complete"]


def test_a_published_study_is_one_object(tmp_path):
    figure = lw.papers.rtas2008.figure(1)
    alone = figure.run(tmp_path / "alone", samples=1)
    assert alone.plot().svg.startswith("<svg") and alone.conclusions[0]["number"] == "C1"
    has_the_types_of_parquet(alone)
    assert {row["figure"] for row in alone.rows()} == {1} and len(alone.rows()) == (6 * 4 + 3 * 2) * 14
    with ThreadPoolExecutor(2) as pool:
        figure.run(tmp_path / "shared", executor=pool, shares=4, samples=1)
    assert digest(tmp_path / "shared") == digest(tmp_path / "alone")
    with pytest.raises(lw.BadInput, match="figure 5 cannot be repeated"):
        lw.papers.rtas2008.figure(5).run(tmp_path / "five")
    with pytest.raises(lw.BadInput, match="sometimes"):
        lw.papers.rtas2008.figure(1, nesting="sometimes").run(tmp_path / "wrong")


@pytest.mark.parametrize("name", ["{}/costs.toml", "../costs.toml"])
def test_an_executor_writes_nowhere_else(tmp_path, name):
    costs = tmp_path / "costs.toml"
    costs.write_text('release = "10 us"\n')
    folder = tmp_path / "study"
    folder.mkdir()
    file = folder / "study.toml"
    file.write_text(STUDY.replace("costs.toml", name.format(tmp_path)))
    with pytest.raises(lw.BadInput, match="beside the study file"):
        lw.study(file, folder / "out", executor=ThreadPoolExecutor(1))
    assert costs.read_text() == 'release = "10 us"\n'
    assert lw.study(file, folder / "out", samples=5).rows()


def test_a_method_may_be_named_like_a_number(tmp_path):
    file = tmp_path / "study.toml"
    text = STUDY.replace('name = "charged"', 'name = "10"').replace('overheads = "costs.toml"\n', "")
    file.write_text(text.replace("samples = 60", "samples = 5"))
    assert all(isinstance(row["method"], str) for row in lw.study(file, tmp_path / "out").rows())


def test_wrong_studies_are_refused(spec, tmp_path):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(STUDY.replace("mpcp", "mpcq"))
    for executor in (None, ThreadPoolExecutor(1)):
        with pytest.raises(lw.BadInput, match="mpcq"):
            lw.study(wrong, tmp_path / "out", executor=executor)
    wrong.write_text("[generator")
    with pytest.raises(lw.BadInput):
        lw.study(wrong, tmp_path / "out", executor=ThreadPoolExecutor(1))
    lw.study(spec, tmp_path / "other", samples=30)
    with pytest.raises(lw.BadInput, match="another study"):
        lw.study(spec, tmp_path / "other", samples=31)
    with pytest.raises(lw.BadInput, match="at least one share"):
        lw.study(spec, tmp_path / "shares", executor=ThreadPoolExecutor(1), shares=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(lw.BadInput):
        lw.study(spec, tmp_path / "file")
