"""Ending a process with its children, on real processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from services.podworker.adapters.process_tree import kill_tree
from tests.support.eventually import eventually


def is_alive(pid: int) -> bool:
    """A dead one that nobody has asked for yet isn't."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_children_and_theirs_end_too(tmp_path: Path) -> None:
    """Also where a name holds what a name shouldn't."""
    odd = tmp_path / "a) b (c"
    odd.symlink_to("/bin/sleep")
    script = f"echo $$; sh -c 'echo $$; \"{odd}\" 3600 & echo $!; wait' & wait"
    process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = [int(process.stdout.readline()) for _ in range(3)]
    eventually(lambda: all(is_alive(pid) for pid in pids), within=10)
    assert kill_tree(process.pid)
    assert process.wait(10) == -9
    eventually(lambda: not any(is_alive(pid) for pid in pids), within=10)
    process.stdout.close()


def test_a_process_that_is_not_there_is_told() -> None:
    process = subprocess.Popen(["true"])
    process.wait(10)
    assert not kill_tree(process.pid)


def test_others_live_on() -> None:
    other, doomed = (subprocess.Popen(["sleep", "3600"]) for _ in range(2))
    kill_tree(doomed.pid)
    doomed.wait(10)
    assert is_alive(other.pid) and is_alive(os.getpid())
    other.kill()
    other.wait(10)
