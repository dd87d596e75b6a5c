"""The supervisor with fake services on a real nats-server: start, restart, end, second start, failures."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.running import running
from shared.runtime.paths import DataPaths
from tests.support.eventually import eventually
from tests.support.nats_server import nats_binary

pytestmark = pytest.mark.nats
ROOT = Path(__file__).parents[3]
NAMES = ["source", "podworker-0", "podworker-1", "status", "stats", "api"]


class Node:
    """One data directory and what runs on it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.paths = DataPaths(data)
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, mode: str = "front") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.component.supervisor.fake_node", str(self.data), mode],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.processes.append(process)
        return process

    def run(self, mode: str) -> tuple[int, str]:
        process = self.start(mode)
        output, _ = process.communicate(timeout=40)
        return process.returncode, output

    def down(self) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "cli.main", "down", "--data", str(self.data)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=40,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def wait_until_up(self) -> int:
        """The supervisor's pid."""

        def ready() -> int:
            now = running(self.paths)
            return now.pid if now is not None and now.ready else 0

        return eventually(ready, within=30)

    def trace(self) -> list[str]:
        path = self.data / "trace"
        return path.read_text().splitlines() if path.exists() else []

    def pid_of(self, name: str) -> int:
        starts = [line.split() for line in self.trace() if line.startswith(f"{name} start")]
        return int(starts[-1][2])

    def supervisor_log(self) -> str:
        return (self.paths.log / "supervisor.log").read_text()


@pytest.fixture
def node() -> Iterator[Node]:
    nats_binary()
    directory = Path(tempfile.mkdtemp(prefix="podbus-", dir="/tmp"))
    made = Node(directory / "data")
    yield made
    now = running(made.paths)
    if now is not None and now.pid:
        os.kill(now.pid, signal.SIGTERM)
    for process in made.processes:
        if process.poll() is None:
            process.terminate()
            process.wait(30)
    eventually(lambda: running(made.paths) is None, within=30)
    shutil.rmtree(directory)


def is_alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def test_each_service_is_told_as_it_becomes_ready_and_then_the_api(node: Node) -> None:
    process = node.start()
    node.wait_until_up()
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    lines = output.splitlines()
    for name in ["nats-server", *NAMES]:
        assert f"{name} ready" in lines
    up = next(line for line in lines if line.startswith("podbus is up"))
    assert up == f"podbus is up: pid {process.pid}, API https://0.0.0.0:19999"
    assert all(lines.index(f"{name} ready") < lines.index(up) for name in NAMES)
    assert process.returncode == 0


def test_at_the_end_api_goes_first_and_the_workers_last(node: Node) -> None:
    process = node.start()
    node.wait_until_up()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    stops = [line.split()[0] for line in node.trace() if line.endswith(" stop")]
    assert stops[0] == "api"
    assert set(stops[1:4]) == {"source", "status", "stats"}
    assert set(stops[4:]) == {"podworker-0", "podworker-1"}
    assert "Server Exiting" in (node.paths.log / "nats-server.log").read_text()
    assert running(node.paths) is None
    assert not node.paths.supervisor_pid.exists()


def test_a_signal_that_comes_twice_at_once_is_one_wish(node: Node) -> None:
    """`timeout` signals the process and then its group; the services get their time all the same."""
    process = node.start()
    node.wait_until_up()
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert "killed" not in node.supervisor_log()


def test_a_killed_service_is_started_again_and_told_why_its_predecessor_ended(node: Node) -> None:
    node.start()
    node.wait_until_up()
    others = {name: node.pid_of(name) for name in NAMES if name != "stats"}
    before = node.pid_of("stats")
    os.kill(before, signal.SIGKILL)
    eventually(lambda: node.pid_of("stats") != before, within=10)
    assert f"stats start {node.pid_of('stats')} was ended by SIGKILL" in node.trace()
    eventually(lambda: "stats ready again" in node.supervisor_log(), within=10)
    assert "stats was ended by SIGKILL after" in node.supervisor_log()
    assert {name: node.pid_of(name) for name in others} == others


def test_a_killed_nats_server_comes_back_and_no_service_ends(node: Node) -> None:
    node.start()
    supervisor = node.wait_until_up()
    services = {name: node.pid_of(name) for name in NAMES}
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    server = next(int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text() == "nats-server\n")
    os.kill(server, signal.SIGKILL)
    eventually(lambda: "nats-server ready again" in node.supervisor_log(), within=15)
    assert {name: node.pid_of(name) for name in NAMES} == services


def test_a_detached_start_returns_when_all_are_ready_and_a_second_says_that_it_is_up(node: Node) -> None:
    code, output = node.run("detach")
    assert code == 0
    assert output.splitlines()[-1].startswith("podbus is up: pid ")
    assert "READY" not in output.replace("READY=1", "")
    now = running(node.paths)
    assert now is not None
    assert now.ready
    assert node.run("front") == (0, f"podbus is up: pid {now.pid}, API https://0.0.0.0:19999\n")
    assert node.down() == (0, "podbus has ended; the pods keep running\n")
    assert node.down() == (0, "podbus is not running\n")


def test_a_start_that_fails_shows_the_end_of_the_log_and_leaves_nothing_behind(node: Node) -> None:
    code, output = node.run("detach+status")
    assert code == 1
    assert "the start has failed: status ended with exit code 1, 3 times before it was ready" in output
    assert "RuntimeError: this one never gets ready" in output
    assert running(node.paths) is None
    assert not any(is_alive(node.pid_of(name)) for name in NAMES)


def test_a_service_that_does_not_end_is_killed_and_the_exit_code_tells(node: Node) -> None:
    process = node.start("front-stats")
    node.wait_until_up()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 2
    assert "stats didn't end within 2 s: killed" in node.supervisor_log()


def test_when_the_supervisor_is_killed_nothing_lingers_and_a_new_one_can_start(node: Node) -> None:
    process = node.start()
    node.wait_until_up()
    pids = [node.pid_of(name) for name in NAMES]
    process.kill()
    process.wait(10)
    eventually(lambda: not any(is_alive(pid) for pid in pids), within=20)
    assert running(node.paths) is None
    code, _ = node.run("detach")
    assert code == 0


def test_the_run_directory_is_made_anew_after_a_reboot_and_the_identity_stays(node: Node) -> None:
    assert node.run("detach")[0] == 0
    assert node.down()[0] == 0
    kept = {path: path.read_bytes() for path in (node.paths.node_file, node.paths.instance_file)}
    shutil.rmtree(node.paths.run)
    assert node.run("detach")[0] == 0
    assert {path: path.read_bytes() for path in kept} == kept


def test_what_holds_secrets_may_be_read_by_the_owner_only(node: Node) -> None:
    assert node.run("detach")[0] == 0
    for directory in (node.paths.run, node.paths.pki, node.paths.nats, node.paths.run / "bus"):
        assert directory.stat().st_mode & 0o777 == 0o700, directory
    secret = [node.paths.nats / "nats.conf", node.paths.nats / "server.json"]
    secret += [*node.paths.pki.iterdir(), *(node.paths.run / "bus").iterdir()]
    assert len(secret) >= 16
    for path in secret:
        assert path.stat().st_mode & 0o777 == 0o600, path


def test_a_second_detached_start_waits_for_the_first_ones_readiness(node: Node) -> None:
    first = node.start("front")
    eventually(lambda: running(node.paths) is not None, within=10)
    code, output = node.run("detach")
    now = running(node.paths)
    assert now is not None and now.ready
    assert (code, output.splitlines()[-1]) == (0, f"podbus is up: pid {first.pid}, API https://0.0.0.0:19999")


def test_a_second_detached_start_tells_that_the_first_one_has_failed(node: Node) -> None:
    first = node.start("front+status")
    eventually(lambda: running(node.paths) is not None, within=10)
    code, output = node.run("detach")
    assert (code, output.splitlines()[-1]) == (1, f"podbus: podbus is not up: pid {first.pid} has ended")


BLOCKED = """
import os, sys, time
from pathlib import Path
import cli.liveness, cli.outage, cli.program
from cli.supervisor import Supervisor

directory = Path(sys.argv[1])
full = directory / "full"
cli.liveness.PERIOD_SECONDS = cli.liveness.RETRY_SECONDS = 0.05
cli.outage.FIRST_SECONDS = cli.outage.MOST_SECONDS = cli.program.MOST_DELAY = 0.3

def body(ready_fd, reason):
    with (directory / "starts").open("a") as file:
        file.write("x")
    os.write(ready_fd, b"ready")
    time.sleep(60)
    return 0

program = cli.program.Program(
    name="p",
    body=body,
    stage=0,
    stop_seconds=2,
    alive=lambda: not full.exists(),
    blocked_by=lambda: "the disk is full" if full.exists() else "",
)
sys.exit(Supervisor([program], logs=directory, say=lambda line: print(line, flush=True)).run())
"""


def test_what_keeps_a_process_from_working_is_told_once_and_not_at_each_restart(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BLOCKED, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    starts = tmp_path / "starts"
    try:
        eventually(lambda: starts.exists(), within=10)
        (tmp_path / "full").touch()
        eventually(lambda: len(starts.read_text()) >= 4, within=20)
        (tmp_path / "full").unlink()
        assert process.stdout is not None
        lines = [process.stdout.readline().rstrip() for _ in range(3)]
    finally:
        process.terminate()
        process.wait(10)
    assert lines[0] == "p ready"
    assert lines[1].startswith("p hangs: the disk is full; it's started again and again")
    assert lines[2].startswith("p works again after ")


CHORE = """
import os, signal, sys, time
from pathlib import Path
from cli.program import Program
from cli.supervisor import Supervisor

directory = Path(sys.argv[1])

def body(ready_fd, reason):
    os.write(ready_fd, b"ready")
    time.sleep(60)
    return 0

def chore():
    with (directory / "done").open("a") as file:
        file.write("x")
    return 0

program = Program(name="p", body=body, stage=0, stop_seconds=2)
supervisor = Supervisor([program], logs=directory, say=print, chore=chore, chore_seconds=0.2)
sys.exit(supervisor.run())
"""


def test_the_chore_is_done_again_and_again_beside_the_services(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", CHORE, str(tmp_path)], cwd=ROOT)
    try:
        eventually(lambda: len((tmp_path / "done").read_text()) >= 3, within=10)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        eventually(lambda: len(children.read_text().split()) == 1, within=5)
    finally:
        process.terminate()
        process.wait(10)
