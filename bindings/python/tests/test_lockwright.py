"""The package against the command line, on the examples of the project."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

import lockwright as lw
from lockwright import _command

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
ROBOT = EXAMPLES / "robot.toml"
PATHFINDER = EXAMPLES / "pathfinder.toml"


def printed(*arguments):
    """The object that the installed command prints, and its exit status."""
    command = [Path(sys.executable).with_name("lockwright"), *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout), done.returncode


@pytest.fixture
def robot():
    return lw.TaskSet.read(ROBOT)


@pytest.mark.parametrize("file", [ROBOT, PATHFINDER], ids=lambda file: file.stem)
@pytest.mark.parametrize("protocol", ["file", "all"])
def test_check_prints_what_the_command_prints(file, protocol):
    by_command, status = printed("check", file, "--protocol", protocol)
    result = lw.check(lw.TaskSet.read(file), protocol=protocol)
    assert result.json == by_command
    assert result.schedulable == (status == 0)


def test_simulate_prints_what_the_command_prints(robot):
    by_command, _ = printed("simulate", ROBOT, "--for", "1s", "--offsets", "random", "--seed", "4")
    result = lw.simulate(robot, horizon="1 s", offsets="random", seed=4)
    assert result.json == by_command
    assert result["imu"].observed.jobs > 0
    assert result["imu"].observed.response <= result["imu"].response
    assert result.schedule.plot()._repr_svg_().startswith("<svg")


def test_a_system_in_python_is_the_one_in_the_file(robot):
    tasks = [
        lw.Task("imu", cpu=0, period="5 ms", wcet="400 us", requests=[lw.Request("state", "50 us")]),
        lw.Task("camera", cpu=1, period=25_000_000, wcet=lw.Duration("4 ms")),
    ]
    system = lw.TaskSet(tasks, name='a "robot"', protocol="mpcp")
    assert system.name == 'a "robot"' and system.cpus == 2 and system.resources == ["state"]
    assert [task["period_ns"] for task in system.tasks] == [5_000_000, 25_000_000]
    assert lw.TaskSet.parse(system.text).tasks == system.tasks
    assert robot.tasks[0]["name"] == "imu" and len(robot) == 6


@pytest.mark.parametrize("text", ['quote " and \\', "line\nbreak", "tab\t\x07", "émoji \U0001f916", "<script>"])
def test_any_name_is_kept_as_text(text):
    system = lw.TaskSet([lw.Task(text, "1 ms", "1 us", requests=[lw.Request(text, "1 us")])])
    assert system.tasks[0]["name"] == text and system.resources == [text]
    assert "<script>" not in system._repr_html_()


def test_results_have_bounds_terms_and_rows(robot):
    result = lw.check(robot)
    imu = result["imu"]
    assert (imu.response, imu.slack, imu.proof) == (650_000, 4_350_000, "lp")
    assert str(imu.response) == "650 us" and imu.observed is None
    assert sum(term.total for term in result.explain("imu")["mpcp"]) == imu.response
    assert result.best.worst_slack == imu.slack
    rows = result.rows()
    assert [row["name"] for row in rows] == [task.name for task in result.best]
    assert "imu" in result._repr_html_() and "imu" in robot._repr_html_()
    with pytest.raises(KeyError):
        result["nobody"]


def test_data_frames_have_a_row_for_each_protocol_and_task(robot):
    pandas = pytest.importorskip("pandas")
    frame = lw.check(robot, protocol="all").to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == frame.protocol.nunique() * len(robot)
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.table(lw.check(robot)).column_names[:2] == ["protocol", "name"]
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(lw.check(robot)).equals(lw.check(robot).to_polars())


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("[[task]]\nname = 'a'\nperiod = 5\nwcet = '1 ms'\n", 3, 10, "unit"),
        ("[[task]]\nname = 'a'\nperiod = '5 ms'\nwcet = '1 ms'\nperoid = 1\n", 5, 1, "peroid"),
        ("[[task]\n", 1, None, ""),
    ],
)
def test_faults_have_their_place(tmp_path, text, line, column, words):
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(lw.BadInput) as caught:
        lw.TaskSet.read(file)
    assert (caught.value.file, caught.value.line) == (str(file), line)
    assert column is None or caught.value.column == column
    assert words in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).faults == caught.value.faults


def test_an_object_costs_what_the_overheads_say(tmp_path):
    costs = tmp_path / "costs.toml"
    costs.write_text('[object.heap]\nlock_free = [[1, "1 us"], [8, "8 us"]]\n')

    def charged(kind):
        tasks = [
            lw.Task(name, "10 ms", "1 ms", cpu=cpu, requests=[lw.Request("events", "100 us")])
            for cpu, name in enumerate(("sensor", "control"))
        ]
        system = lw.TaskSet(tasks, resources=[lw.Resource("events", object=kind)], protocol="lock_free")
        result = lw.check(system, overheads=costs)
        return [task["charged_cost_ns"] for task in result.json["results"][0]["tasks"]]

    assert charged("heap")[0] < 950_000 < 1_000_000 <= charged(None)[0]
    with pytest.raises(lw.BadInput, match="stack"):
        charged("stack")


def test_wrong_arguments_are_refused(robot):
    with pytest.raises(lw.BadInput, match="mpcq"):
        lw.check(robot, protocol="mpcq")
    with pytest.raises(lw.BadInput, match="nobody"):
        lw.check(robot).explain("nobody")
    with pytest.raises(lw.BadInput):
        lw.check(robot, overheads="no such file")
    with pytest.raises(FileNotFoundError):
        lw.TaskSet.read("no such file")
    with pytest.raises(ValueError, match="no duration"):
        lw.Task("a", "5", "1 ms") and lw.TaskSet([lw.Task("a", "5", "1 ms")])
    with pytest.raises(TypeError):
        lw.Duration(1.5)
    # Earlier faults do not come back.
    assert lw.check(robot).schedulable


def test_durations():
    assert lw.Duration("1.5 ms") == 1_500_000 and lw.Duration("2µs") == 2_000 and lw.Duration("1_000 ns") == 1_000
    assert [str(lw.Duration(n)) for n in (0, 1, 2_000, 3_000_000, 10**9)] == ["0 ns", "1 ns", "2 us", "3 ms", "1 s"]
    for wrong in ("", "5", "ms", "1 fortnight", "0.5 ns", "-1 ms", "1e3 ms"):
        with pytest.raises(ValueError):
            lw.Duration(wrong)


def test_task_sets_travel_to_other_processes(robot):
    again = pickle.loads(pickle.dumps(robot))
    assert again == robot and hash(again) == hash(robot)
    with ProcessPoolExecutor(2) as executor:
        found = list(executor.map(lw.check, [robot, again]))
    assert found[0].json == found[1].json == lw.check(robot).json


def test_threads_have_results_of_their_own():
    files = [ROBOT, PATHFINDER] * 8
    expected = {file: lw.check(lw.TaskSet.read(file)).json for file in files}

    def check(file):
        return lw.check(lw.TaskSet.read(file)).json == expected[file]

    with ThreadPoolExecutor(8) as executor:
        assert all(executor.map(check, files))


def test_a_signal_stops_a_simulation(robot):
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        lw.simulate(robot, horizon="10 h", offsets="random", runs=1000)
    assert time.monotonic() - begin < 10


def test_a_dense_schedule_has_a_picture_of_its_end():
    tasks = [lw.Task("fast", "1 ms", "400 us"), lw.Task("slow", "10 s", "6100 ms")]
    result = lw.simulate(lw.TaskSet(tasks, priorities="rate-monotonic"), horizon="15 s")
    assert result["slow"].observed.misses == 1 and "it misses 1 deadline" in result.schedule.svg


def test_a_second_signal_kills_a_command_that_does_not_end():
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            _command._end(child)
        assert child.returncode == -signal.SIGKILL


def test_a_command_ends_with_the_process_that_started_it(tmp_path):
    arguments = ["simulate", str(ROBOT), "--for", "10h", "--offsets", "random", "--runs", "1000"]
    script = f"import lockwright as lw; lw.command(*{arguments!r}, isolated=True)"

    def commands(parent):
        found = []
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                text = status.read_text()
            except OSError:
                continue
            if f"\nPPid:\t{parent}\n" in text:
                found.append(status)
        return found

    with subprocess.Popen([sys.executable, "-c", script]) as process:
        try:
            end = time.monotonic() + 30
            while not (found := commands(process.pid)) and time.monotonic() < end:
                time.sleep(0.02)
            assert len(found) == 1
            # It executes the command.
            time.sleep(1)
        finally:
            process.kill()

    def executes():
        try:
            return "\nState:\tZ" not in found[0].read_text()
        except OSError:
            return False

    while executes() and time.monotonic() < end + 30:
        time.sleep(0.05)
    assert not executes()


def test_results_beside_a_failure_raise_it():
    completed = lw.command("simulate", ROBOT, "--json", "--svg", "/dev/full")
    assert completed.status == 3 and '"verb"' in completed.out
    with pytest.raises(lw.Refused, match="/dev/full"):
        _command.json_of(completed, str(ROBOT))


def test_an_ignored_interrupt_stays_ignored():
    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    command = [Path(sys.executable).with_name("lockwright"), "simulate", ROBOT, "--for", "10h", "--offsets", "random"]
    null = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*command, "--runs", "1000"], preexec_fn=ignore, **null) as process:
        try:
            status = Path(f"/proc/{process.pid}/status")

            def has(mask, number):
                [bits] = [line.split()[1] for line in status.read_text().splitlines() if line.startswith(mask)]
                return bool(int(bits, 16) >> (number - 1) & 1)

            deadline = time.monotonic() + 60
            while not has("SigCgt:", signal.SIGTERM):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert has("SigIgn:", signal.SIGINT)
            process.send_signal(signal.SIGINT)
            process.terminate()
            assert process.wait(60) == 130
        finally:
            process.kill()


def test_a_resource_that_is_there_twice_is_refused():
    task = lw.Task("a", "1 ms", "1 us")
    twice = [lw.Resource("bus", ceiling=3), lw.Resource("bus", ceiling=9)]
    with pytest.raises(lw.BadInput, match="bus"):
        lw.TaskSet([task], resources=twice)
    assert lw.TaskSet([task], resources=[lw.Resource("bus")]).resources == ["bus"]


def test_a_run_executes_in_its_own_process(robot):
    try:
        result = lw.run(robot, horizon="300 ms")
    except lw.Refused as refused:
        if os.environ.get("LOCKWRIGHT_REQUIRE_RT"):
            raise
        pytest.skip(f"no real-time threads here: {refused}")
    assert result["imu"].observed.jobs > 10


def test_the_server_of_the_package_answers():
    command = [Path(sys.executable).with_name("lockwright"), "serve", PATHFINDER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().strip()
            question = json.dumps({"text": PATHFINDER.read_text(), "protocol": "pip"}).encode()
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(address + "result", question, headers)
            answer = json.load(urllib.request.urlopen(request, timeout=60))
        finally:
            server.terminate()
    assert answer["faults"] == [] and "ordo_bus" in answer["html"]


def test_the_command_is_the_command():
    done = lw.command("check", PATHFINDER, "--explain", "ordo_bus")
    by_command = subprocess.run(
        [Path(sys.executable).with_name("lockwright"), "check", PATHFINDER, "--explain", "ordo_bus"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.status, done.out, done.err) == (by_command.returncode, by_command.stdout, by_command.stderr)
    assert lw.command("check", "-", input=PATHFINDER.read_text()).status == done.status
    assert lw.doctor()["verb"] == "doctor"
    assert lw.command("no-such-verb").status == 2
