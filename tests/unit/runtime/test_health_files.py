"""What killed replicas leave behind is removed, and nothing of those that live."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from shared.runtime.health import DEAD_SECONDS, clear_dead_replicas

NOW = 1_000_000.0


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "health").mkdir()
    return tmp_path


def replica(run: Path, process: str, *, age: float, listens: bool) -> socket.socket:
    health = run / "health" / f"{process}.json"
    health.write_text("{}")
    os.utime(health, (NOW - age, NOW - age))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(run / f"{process}.sock"))
    if listens:
        listener.listen()
    else:
        listener.close()
    return listener


def left(run: Path) -> set[str]:
    return {path.name for path in run.rglob("*") if not path.is_dir()}


def test_a_dead_replicas_health_file_and_socket_go(run: Path) -> None:
    replica(run, "podworker-77", age=DEAD_SECONDS + 1, listens=False)
    clear_dead_replicas(run, "podworker", now=NOW)
    assert not left(run)


def test_a_replica_that_was_killed_a_moment_ago_may_only_be_slow(run: Path) -> None:
    replica(run, "podworker-77", age=DEAD_SECONDS - 1, listens=False)
    clear_dead_replicas(run, "podworker", now=NOW)
    assert left(run) == {"podworker-77.json", "podworker-77.sock"}


def test_a_replica_that_stands_still_keeps_its_socket(run: Path) -> None:
    with replica(run, "podworker-77", age=DEAD_SECONDS + 1, listens=True):
        clear_dead_replicas(run, "podworker", now=NOW)
        assert left(run) == {"podworker-77.json", "podworker-77.sock"}


def test_other_services_files_stay(run: Path) -> None:
    replica(run, "stats", age=DEAD_SECONDS + 1, listens=False)
    clear_dead_replicas(run, "podworker", now=NOW)
    assert left(run) == {"stats.json", "stats.sock"}
