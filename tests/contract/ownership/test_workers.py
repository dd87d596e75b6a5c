"""Four real worker processes on one lock file: killed, stopped, ended, replaced; never two on one slot."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.kube.ids import SLOTS
from tests.support.eventually import eventually
from tests.support.ownership_journal import Entry, handlings, overlaps, parse

ROOT = Path(__file__).resolve().parents[3]


class Crowd:
    """The processes, their journals, and when which was killed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: list[subprocess.Popen[bytes]] = []
        self._journals: list[Path] = []
        self.deaths: dict[str, int] = {}

    def start(self) -> subprocess.Popen[bytes]:
        journal = self._directory / f"journal-{len(self._journals)}"
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.slot_worker", str(self._directory / "owners.lock"), str(journal)],
            cwd=ROOT,
        )
        self._running.append(process)
        self._journals.append(journal)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> int:
        """kill -9; when."""
        at = time.monotonic_ns()
        self.deaths[str(process.pid)] = at
        process.kill()
        process.wait(10)
        return at

    def entries(self) -> list[Entry]:
        return [e for journal in self._journals if journal.exists() for e in parse(journal.read_text())]

    def handlers_since(self, at: int) -> dict[str, set[str]]:
        """Slot -> the workers that began to work on it after that instant."""
        found: dict[str, set[str]] = {}
        for entry in self.entries():
            if entry.begins and entry.at > at:
                found.setdefault(entry.uid, set()).add(entry.worker)
        return found

    def settled(self) -> dict[str, str]:
        """Wait until, for half a second, every slot is worked on, by one worker, and every worker has some."""
        alive = {str(process.pid) for process in self._running if process.poll() is None}

        def stable() -> dict[str, str]:
            workers = self.handlers_since(time.monotonic_ns() - 500_000_000)
            if len(workers) < SLOTS or any(len(who) > 1 for who in workers.values()):
                return {}
            owners = {slot: next(iter(who)) for slot, who in workers.items()}
            return owners if set(owners.values()) == alive else {}

        return eventually(stable, within=25, every=0.2)

    def close(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait(10)


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    made = Crowd(tmp_path)
    yield made
    made.close()


def test_a_killed_workers_slots_go_to_the_others_and_no_other_slot_moves(crowd: Crowd) -> None:
    first, *_ = [crowd.start() for _ in range(4)]
    before = crowd.settled()
    crowd.kill(first)
    after = crowd.settled()
    dead = str(first.pid)
    assert {slot for slot in before if before[slot] != after[slot]} == {s for s in before if before[s] == dead}
    assert overlaps(handlings(crowd.entries(), crowd.deaths), {}) == []


@pytest.mark.timeout(120)
def test_no_slot_ever_has_two_workers_whatever_happens_to_them(crowd: Crowd) -> None:
    """kill -9, SIGSTOP and SIGCONT, SIGTERM, and a new worker for each that went."""
    killed, stopped, asked, _ = [crowd.start() for _ in range(4)]
    owners = crowd.settled()
    stopped.send_signal(signal.SIGSTOP)
    paused_at = time.monotonic_ns()
    crowd.kill(killed)
    crowd.start()
    frozen = {slot for slot, worker in owners.items() if worker == str(stopped.pid)}
    left = {slot for slot, worker in owners.items() if worker == str(killed.pid)}
    eventually(lambda: left <= crowd.handlers_since(paused_at).keys(), within=10)
    assert not frozen & crowd.handlers_since(paused_at + 100_000_000).keys(), "a stopped worker's slots were taken"
    stopped.send_signal(signal.SIGCONT)
    asked.send_signal(signal.SIGTERM)
    assert asked.wait(15) == 0
    crowd.start()
    crowd.settled()
    assert overlaps(handlings(crowd.entries(), crowd.deaths), {}) == []
