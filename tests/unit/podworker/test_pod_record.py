"""A pod's row over time: what remains of a deadline remains, a full disk is worked around, events are kept."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from services.podworker.core.admission import Demand, NodeLimits
from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import Backoff, PodMemory, Rejection, Stop, Termination, Waiting
from services.podworker.handlers.pod_record import MAX_UNTOLD, PodRecord, Recorder
from services.podworker.ports import StoredPod, StoreUnavailable
from shared.contracts.events import Event

SAVED_AT = 1_000_000.0
HOUR = 3600.0
DEMAND = Demand(cpu_milli=0, memory_bytes=0, host_ports=())
LIMITS = NodeLimits(pods=110, cpu_milli=2000, memory_bytes=1 << 30)


@dataclass
class FakeClock:
    wall: float = SAVED_AT
    booted_for: float = 500.0
    boot: str = "boot 1"

    def now(self) -> float:
        return self.wall

    def boot_seconds(self) -> float:
        return self.booted_for

    def boot_id(self) -> str:
        return self.boot

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.booted_for += seconds

    def reboots(self, *, off_for: float) -> None:
        self.wall += off_for
        self.booted_for = 10.0
        self.boot += "+1"


@dataclass
class FakeStore:
    """PodStore in memory; with `full` every write fails."""

    rows: dict[str, StoredPod] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    graves: dict[str, int] = field(default_factory=dict)
    full: bool = False
    writes: int = 0

    def save(self, memory: PodMemory, body: bytes, events: Sequence[Event] = ()) -> int:
        self._write()
        before = self.rows.get(memory.uid)
        rev = 1 if before is None else before.rev + 1
        self.rows[memory.uid] = StoredPod(memory=memory, body=body, rev=rev)
        self.events.extend(events)
        return rev

    def admit(self, memory: PodMemory, body: bytes, demand: Demand, limits: NodeLimits) -> Rejection | None:
        self._write()
        self.rows[memory.uid] = StoredPod(memory=replace(memory, admitted=True), body=body, rev=1)
        return None

    def preempted(self) -> set[str]:
        return set()

    def resize(self, memory: PodMemory, body: bytes, demand: Demand, limits: NodeLimits) -> Rejection | None:
        raise AssertionError("no test here resizes")

    def delete(self, uid: str) -> None:
        self._write()
        self.rows.pop(uid, None)

    def bury(self, uid: str, gen: int, now: float) -> None:
        self.delete(uid)
        self.graves[uid] = gen

    def buried(self, uid: str, now: float) -> int | None:
        return self.graves.get(uid)

    def load(self, uid: str) -> StoredPod | None:
        return self.rows.get(uid)

    def load_slots(self, slots: Iterable[int]) -> list[StoredPod]:
        return list(self.rows.values())

    def all_uids(self) -> set[str]:
        return set(self.rows)

    def pending_events(self, limit: int) -> list[Event]:
        return self.events[:limit]

    def acknowledge_events(self, ids: Sequence[str]) -> None:
        self.events = [event for event in self.events if event.id not in ids]

    def _write(self) -> None:
        if self.full:
            raise StoreUnavailable("database or disk is full")
        self.writes += 1


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


ENDING = PodMemory(
    uid="u1",
    namespace="default",
    name="a",
    source="file",
    started_at=SAVED_AT - HOUR,
    admitted=True,
    termination=Termination(at=SAVED_AT, grace=30, reason="removed"),
    stops={"c1": Stop(deadline=SAVED_AT + 30, reason="terminating", signalled_at=SAVED_AT)},
)
CRASHING = PodMemory(
    uid="u2",
    namespace="default",
    name="b",
    source="file",
    admitted=True,
    backoffs={"main": Backoff(delay=40, updated_at=SAVED_AT)},
    image_backoffs={"busybox": Backoff(delay=80, updated_at=SAVED_AT)},
    waiting={"main": Waiting(reason="CrashLoopBackOff", message="", at=SAVED_AT, retry_at=SAVED_AT + 40)},
)
STEADY = PodMemory(uid="u3", namespace="default", name="c", source="file", admitted=True, started_at=SAVED_AT)


def event(number: int = 0) -> PodEvent:
    return PodEvent(type="Normal", reason="Told", message=f"number {number}")


def saved(store: FakeStore, clock: FakeClock, *memories: PodMemory) -> None:
    """Rows that a worker leaves behind at SAVED_AT."""
    recorder = Recorder(store, clock, "podworker-0")
    for memory in memories:
        recorder.save(PodRecord(), memory, [])


def loaded(store: FakeStore, clock: FakeClock) -> dict[str, PodMemory]:
    """What the next owner, a new process, knows."""
    return {row.memory.name: row.memory for row in Recorder(store, clock, "podworker-1").load_slots([])}


# -- time -----------------------------------------------------------------------------------------------------


def remaining(memory: PodMemory, clock: FakeClock) -> list[float]:
    """Of every deadline, in seconds."""
    now = clock.now()
    left = [stop.deadline - now for stop in memory.stops.values()]
    if memory.termination is not None:
        left.append(memory.termination.at + memory.termination.grace - now)
    left += [b.updated_at + b.delay - now for b in (*memory.backoffs.values(), *memory.image_backoffs.values())]
    return left + [w.retry_at - now for w in memory.waiting.values() if w.retry_at is not None]


def test_the_next_owner_counts_on_from_where_the_last_one_was(store: FakeStore, clock: FakeClock) -> None:
    saved(store, clock, ENDING, CRASHING)
    clock.passes(12)
    pods = loaded(store, clock)
    assert remaining(pods["a"], clock) == [18, 18]
    assert remaining(pods["b"], clock) == [28, 68, 28]


def test_after_a_reboot_what_remained_of_grace_and_back_off_remains(store: FakeStore, clock: FakeClock) -> None:
    saved(store, clock, ENDING, CRASHING)
    clock.reboots(off_for=HOUR)
    pods = loaded(store, clock)
    assert remaining(pods["a"], clock) == [30, 30]
    assert remaining(pods["b"], clock) == [40, 80, 40]


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forward", "back"])
def test_after_a_step_of_the_clock_what_remained_remains(store: FakeStore, clock: FakeClock, step: float) -> None:
    saved(store, clock, ENDING, CRASHING)
    clock.passes(12)
    clock.wall += step
    pods = loaded(store, clock)
    assert remaining(pods["a"], clock) == [18, 18]
    assert remaining(pods["b"], clock) == [28, 68, 28]


def test_drift_of_the_clock_is_no_step(store: FakeStore, clock: FakeClock) -> None:
    saved(store, clock, ENDING)
    clock.wall += 3
    assert remaining(loaded(store, clock)["a"], clock) == [27, 27]


def test_instants_of_the_past_stay(store: FakeStore, clock: FakeClock) -> None:
    saved(store, clock, ENDING)
    clock.reboots(off_for=HOUR)
    assert loaded(store, clock)["a"].started_at == ENDING.started_at


@pytest.mark.parametrize("cause", ["reboot", "step"])
def test_the_owner_after_the_next_does_not_move_the_instants_a_second_time(
    store: FakeStore, clock: FakeClock, cause: str
) -> None:
    saved(store, clock, ENDING, STEADY)
    if cause == "reboot":
        clock.reboots(off_for=HOUR)
    else:
        clock.wall += HOUR
    writes = store.writes
    loaded(store, clock)
    assert store.writes == writes + 1, "only the row with a deadline is written anew"
    clock.passes(12)
    assert remaining(loaded(store, clock)["a"], clock) == [18, 18]


def test_a_full_disk_does_not_keep_a_new_owner_from_its_rows(store: FakeStore, clock: FakeClock) -> None:
    saved(store, clock, ENDING)
    clock.reboots(off_for=HOUR)
    store.full = True
    assert remaining(loaded(store, clock)["a"], clock) == [30, 30]


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_step_of_the_clock_while_the_owner_works_moves_its_deadlines_too(
    store: FakeStore, clock: FakeClock, step: float
) -> None:
    recorder, record = Recorder(store, clock, "podworker-0"), PodRecord()
    recorder.save(record, ENDING, [])
    clock.passes(12)
    clock.wall += step
    recorder.follow_clock(record)
    assert record.memory is not None
    assert remaining(record.memory, clock) == [18, 18]
    clock.passes(6)
    recorder.follow_clock(record)
    assert remaining(record.memory, clock) == [12, 12]
    recorder.save(record, record.memory, [])
    assert remaining(loaded(store, clock)["a"], clock) == [12, 12]


# -- a full disk ----------------------------------------------------------------------------------------------


def test_a_full_disk_is_worked_around_and_told_once(
    store: FakeStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    recorder, record = Recorder(store, clock, "podworker-0"), PodRecord()
    store.full = True
    with caplog.at_level(logging.INFO, "podbus.podworker.record"):
        for gen in range(3):
            recorder.save(record, replace(STEADY, gen=gen), [])
    assert record.memory == replace(STEADY, gen=2), "the memory goes on without its row"
    assert "full" in recorder.trouble
    assert [r.levelname for r in caplog.records] == ["ERROR"]


def test_with_room_again_the_newest_memory_and_all_events_are_written(
    store: FakeStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    recorder, record = Recorder(store, clock, "podworker-0"), PodRecord()
    store.full = True
    recorder.save(record, replace(STEADY, gen=1), [event(1)])
    recorder.save(record, replace(STEADY, gen=2), [event(2)])
    store.full = False
    caplog.clear()
    with caplog.at_level(logging.INFO, "podbus.podworker.record"):
        recorder.save(record, replace(STEADY, gen=2), [])
    assert replace(store.rows["u3"].memory, anchor=None) == replace(STEADY, gen=2)
    assert [e.message for e in store.events] == ["number 1", "number 2"]
    assert recorder.trouble == ""
    assert [r.levelname for r in caplog.records] == ["INFO"]


def test_what_can_not_be_stored_is_neither_admitted_nor_forgotten(store: FakeStore, clock: FakeClock) -> None:
    recorder, record = Recorder(store, clock, "podworker-0"), PodRecord(memory=STEADY)
    store.full = True
    with pytest.raises(StoreUnavailable):
        recorder.admit(record, STEADY, DEMAND, LIMITS)
    assert recorder.trouble
    with pytest.raises(StoreUnavailable):
        recorder.forget(record, "u3")
    assert record.memory == STEADY
    store.full = False
    assert recorder.admit(record, STEADY, DEMAND, LIMITS) is None
    assert recorder.trouble == ""


def test_an_equal_memory_is_not_written_again(store: FakeStore, clock: FakeClock) -> None:
    recorder, record = Recorder(store, clock, "podworker-0"), PodRecord()
    for _ in range(3):
        recorder.save(record, STEADY, [])
    assert store.writes == 1


# -- events ---------------------------------------------------------------------------------------------------


def test_an_event_is_handed_to_the_store_once_with_an_id_of_its_own(store: FakeStore, clock: FakeClock) -> None:
    recorder, record = Recorder(store, clock, "podworker-0"), PodRecord()
    recorder.save(record, STEADY, [event(1), event(2)])
    recorder.save(record, STEADY, [event(3)])
    recorder.save(record, STEADY, [])
    assert [e.message for e in store.events] == ["number 1", "number 2", "number 3"]
    assert len({e.id for e in store.events}) == 3
    assert {(e.involved.name, e.involved.uid, e.time) for e in store.events} == {("c", "u3", SAVED_AT)}


def test_a_later_process_of_the_same_name_gives_other_ids(store: FakeStore, clock: FakeClock) -> None:
    Recorder(store, clock, "podworker-0").save(PodRecord(), STEADY, [event()])
    clock.passes(1)
    Recorder(store, clock, "podworker-0").save(PodRecord(), STEADY, [event()])
    assert len({e.id for e in store.events}) == 2


def test_while_the_disk_is_full_the_newest_events_are_kept(store: FakeStore, clock: FakeClock) -> None:
    recorder, record = Recorder(store, clock, "podworker-0"), PodRecord()
    store.full = True
    for number in range(MAX_UNTOLD + 50):
        recorder.save(record, STEADY, [event(number)])
    assert len(record.untold) == MAX_UNTOLD
    store.full = False
    recorder.save(record, STEADY, [])
    assert [e.message for e in store.events] == [f"number {n}" for n in range(50, MAX_UNTOLD + 50)]
    assert record.untold == []
