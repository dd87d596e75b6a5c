"""The kernel's part of ownership, with real processes: who holds, who lives, and what death and a stop do to it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from services.podworker.adapters import owner_locks
from services.podworker.adapters.owner_locks import LocksUnusable, OwnerLocks, TooManyWorkers
from tests.support.eventually import eventually
from tests.support.lock_holder import LockHolder

FREE_WITHIN = 1.0
"""Seconds from kill -9 to a free lock; it takes about a millisecond, the rest is a busy machine."""

HolderMaker = Callable[..., LockHolder]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "owners.lock"


@pytest.fixture
def locks(path: Path) -> Iterator[OwnerLocks]:
    made = OwnerLocks(path)
    yield made
    made.close()


@pytest.fixture
def a_holder(path: Path) -> Iterator[HolderMaker]:
    made: list[LockHolder] = []

    def make(wrapper: Sequence[str] = ()) -> LockHolder:
        made.append(LockHolder(path, wrapper))
        return made[-1]

    yield make
    for holder in made:
        holder.close()


def test_a_held_slot_is_refused_to_every_other_process(locks: OwnerLocks, a_holder: HolderMaker) -> None:
    holder = a_holder()
    assert holder.ask("acquire 5") == "True"
    assert not locks.acquire(5)
    assert locks.acquire(4)
    assert locks.acquire(6)
    holder.ask("release 5")
    assert locks.acquire(5)


def test_a_slot_that_is_ours_is_acquired_again(locks: OwnerLocks) -> None:
    assert locks.acquire(0)
    assert locks.acquire(0)


def test_only_slots_0_to_255_exist(locks: OwnerLocks) -> None:
    for slot in (-1, 256):
        with pytest.raises(ValueError, match=r"is not in 0\.\.255"):
            locks.acquire(slot)


def test_a_killed_holder_frees_its_slots_and_its_membership(locks: OwnerLocks, a_holder: HolderMaker) -> None:
    holder = a_holder()
    holder.ask("join")
    holder.ask("acquire 5")
    holder.kill()
    eventually(lambda: locks.acquire(5), within=FREE_WITHIN)
    assert locks.members() == frozenset()


def test_a_killed_holders_running_child_keeps_nothing_locked(locks: OwnerLocks, a_holder: HolderMaker) -> None:
    holder = a_holder()
    holder.ask("acquire 5")
    child = int(holder.ask("child 60"))
    try:
        holder.kill()
        eventually(lambda: locks.acquire(5), within=FREE_WITHIN)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_stopped_holder_keeps_its_slots_and_lives(locks: OwnerLocks, a_holder: HolderMaker) -> None:
    """A worker that hangs is safe: its pods wait, nobody doubles them."""
    holder = a_holder()
    holder.ask("join")
    holder.ask("acquire 5")
    holder.send(signal.SIGSTOP)
    assert not locks.acquire(5)
    assert locks.members() == {0}
    holder.send(signal.SIGKILL)
    eventually(lambda: locks.acquire(5), within=FREE_WITHIN)


def test_members_are_told_without_a_heartbeat(locks: OwnerLocks, a_holder: HolderMaker) -> None:
    holders = [a_holder() for _ in range(4)]
    assert [holder.ask("join") for holder in holders] == ["0", "1", "2", "3"]
    assert locks.members() == {0, 1, 2, 3}
    assert locks.join() == 4
    assert holders[0].ask("members") == "[0, 1, 2, 3, 4]"
    holders[2].kill()
    assert locks.members() == {0, 1, 3, 4}
    holders[0].ask("leave")
    assert locks.members() == {1, 3, 4}


def test_a_new_worker_takes_the_first_free_index_and_keeps_it(locks: OwnerLocks, a_holder: HolderMaker) -> None:
    first, second = a_holder(), a_holder()
    assert first.ask("join") == "0"
    assert second.ask("join") == "1"
    first.kill()
    assert locks.join() == 0
    assert locks.join() == 0


def test_leaving_keeps_the_slots_until_each_is_released(locks: OwnerLocks, a_holder: HolderMaker) -> None:
    holder = a_holder()
    holder.ask("join")
    holder.ask("acquire 5")
    holder.ask("leave")
    assert locks.members() == frozenset()
    assert not locks.acquire(5)


def test_the_65th_worker_is_refused(path: Path) -> None:
    crowd = [OwnerLocks(path) for _ in range(65)]
    try:
        assert [locks.join() for locks in crowd[:64]] == list(range(64))
        with pytest.raises(TooManyWorkers, match="64 workers run already"):
            crowd[64].join()
        assert crowd[64].members() == set(range(64))
    finally:
        for locks in crowd:
            locks.close()


def test_other_uses_of_the_file_in_the_process_drop_no_lock(
    locks: OwnerLocks, path: Path, a_holder: HolderMaker
) -> None:
    """POSIX locks would all go with the first close() of the file."""
    assert locks.acquire(5)
    path.read_bytes()
    assert a_holder().ask("acquire 5") == "False"


def test_a_holder_in_other_pid_and_mount_namespaces_is_seen(locks: OwnerLocks, a_holder: HolderMaker) -> None:
    """As in a container with the run directory mounted."""
    wrapper = ["unshare", "--pid", "--fork", "--mount", "--kill-child"]
    if shutil.which("unshare") is None or subprocess.run([*wrapper, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody make namespaces")
    holder = a_holder(wrapper)
    assert holder.ask("join") == "0"
    assert holder.ask("acquire 5") == "True"
    assert locks.members() == {0}
    assert not locks.acquire(5)
    holder.kill()
    eventually(lambda: locks.acquire(5), within=FREE_WITHIN)
    assert locks.members() == frozenset()


def test_workers_with_one_file_have_one_identity(locks: OwnerLocks, path: Path, tmp_path: Path) -> None:
    same, other = OwnerLocks(path), OwnerLocks(tmp_path / "other.lock")
    assert same.identity == locks.identity != other.identity
    same.close()
    other.close()


def test_the_self_test_passes_on_a_local_file_system(locks: OwnerLocks, path: Path) -> None:
    """Also while others run, which test or not."""
    other = OwnerLocks(path)
    assert locks.self_test(workers=4) is None
    assert other.self_test(workers=None) is None
    other.close()


def test_locks_that_others_do_not_see_refuse_more_than_one_worker(
    locks: OwnerLocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child looks at another file: as on a file system that keeps locks to itself."""
    other = locks.path.with_name("other")
    other.touch()
    monkeypatch.setattr(owner_locks, "_LOOK", owner_locks._LOOK.replace("sys.argv[1]", f"'{other}'"))
    with pytest.raises(LocksUnusable, match="another process doesn't see our lock: only one worker can run"):
        locks.self_test(workers=2)
    with pytest.raises(LocksUnusable):
        locks.self_test(workers=None)
    assert "another process doesn't see our lock" in (locks.self_test(workers=1) or "")


def test_a_child_that_cannot_look_is_told_with_its_reason(locks: OwnerLocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_locks, "_LOOK", "raise SystemExit('no such device')")
    with pytest.raises(LocksUnusable, match=r"can't look at the lock \(no such device\)"):
        locks.self_test(workers=2)
