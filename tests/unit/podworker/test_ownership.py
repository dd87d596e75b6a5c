"""Slots are taken, handed over and given back; in no time, over a model of the kernel's locks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from services.podworker.core.placement import wanted_slots
from services.podworker.handlers.ownership import Ownership
from shared.kube.ids import SLOTS
from tests.support.virtual_time import VirtualTime

ALL = frozenset(range(SLOTS))


class Kernel:
    """The locks of one file: byte -> worker."""

    def __init__(self) -> None:
        self.slots: dict[int, ModelLocks] = {}
        self.indexes: dict[int, ModelLocks] = {}


class ModelLocks:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def members(self) -> frozenset[int]:
        return frozenset(self.kernel.indexes)

    def join(self) -> int:
        index = next(i for i in range(64) if i not in self.kernel.indexes)
        self.kernel.indexes[index] = self
        return index

    def leave(self) -> None:
        self.kernel.indexes = {i: w for i, w in self.kernel.indexes.items() if w is not self}

    def acquire(self, slot: int) -> bool:
        return self.kernel.slots.setdefault(slot, self) is self

    def release(self, slot: int) -> None:
        assert self.kernel.slots.pop(slot) is self

    def die(self) -> None:
        self.leave()
        self.kernel.slots = {s: w for s, w in self.kernel.slots.items() if w is not self}


class Worker:
    """An Ownership with handlers that note what they are told; `busy` slots end when their event is set."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.locks = ModelLocks(node.kernel)
        self.gained: list[frozenset[int]] = []
        self.lost: list[int] = []
        self.busy: dict[int, asyncio.Event] = {}
        self.broken = False
        self.ownership = Ownership(
            self.locks,
            on_gained=self._take_over,
            on_lost=self._hand_over,
            announce=self._announce,
            monotonic=node.time.monotonic,
            sleep=node.time.sleep,
        )
        self.ownership.start()
        self.task = asyncio.create_task(self.ownership.run())

    def _take_over(self, slots: frozenset[int]) -> None:
        if self.broken:
            raise OSError("no space left on device")
        for slot in slots:
            assert self.node.kernel.slots[slot] is self.locks
        self.gained.append(slots)

    async def _hand_over(self, slot: int) -> None:
        self.lost.append(slot)
        if slot in self.busy:
            await self.busy[slot].wait()
        if self.broken:
            raise OSError("no space left on device")

    async def _announce(self, slot: int) -> None:
        for worker in self.node.workers:
            if self.node.hints and worker is not self and not worker.task.done():
                worker.ownership.released(slot)

    def die(self) -> None:
        self.task.cancel()
        self.locks.die()


class Node:
    def __init__(self) -> None:
        self.time = VirtualTime()
        self.kernel = Kernel()
        self.workers: list[Worker] = []
        self.hints = True

    async def worker(self) -> Worker:
        worker = Worker(self)
        self.workers.append(worker)
        await self.time.settle()
        return worker


@pytest_asyncio.fixture
async def node() -> AsyncIterator[Node]:
    made = Node()
    yield made
    for worker in made.workers:
        worker.task.cancel()
    await asyncio.gather(*(worker.task for worker in made.workers), return_exceptions=True)


async def settled(node: Node, number: int) -> list[Worker]:
    workers = [await node.worker() for _ in range(number)]
    await node.time.advance(2.5)
    return workers


async def test_a_worker_alone_owns_every_slot_at_once(node: Node) -> None:
    first = await node.worker()
    assert first.gained == [ALL]
    assert first.ownership.owned == ALL
    assert first.ownership.index == 0
    assert first.ownership.holds(0)


async def test_a_join_takes_its_share_after_a_second_and_no_slot_is_lost(node: Node) -> None:
    first = await node.worker()
    second = await node.worker()
    await node.time.advance(0.9)
    assert second.ownership.owned == frozenset()
    await node.time.advance(1.0)
    assert first.ownership.owned == wanted_slots(0, {0, 1})
    assert second.ownership.owned == wanted_slots(1, {0, 1})
    assert frozenset(first.lost) == second.ownership.owned


async def test_slots_that_come_one_by_one_are_told_in_one_line(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    _, second = await settled(node, 2)
    share = len(second.ownership.owned)
    assert len(second.gained) == share > 1
    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("gained")]
    assert told == [f"gained slots={SLOTS} owned={SLOTS}", f"gained slots={share} owned={share}"]


async def test_slots_change_hands_without_hints_too(node: Node) -> None:
    node.hints = False
    first, second = await settled(node, 2)
    assert first.ownership.owned | second.ownership.owned == ALL


async def test_a_death_moves_only_the_dead_workers_slots_within_a_scan(node: Node) -> None:
    workers = await settled(node, 4)
    before = [worker.ownership.owned for worker in workers]
    workers[2].die()
    await node.time.advance(0.1)
    for worker, had in zip(workers, before, strict=True):
        if worker is not workers[2]:
            assert worker.ownership.owned >= had
    assert frozenset().union(*(w.ownership.owned for w in workers if w is not workers[2])) == ALL


async def test_a_busy_slot_stays_locked_until_its_work_is_at_a_checkpoint(node: Node) -> None:
    first = await node.worker()
    slot = min(wanted_slots(1, {0, 1}))
    first.busy[slot] = asyncio.Event()
    second = await node.worker()
    await node.time.advance(30)
    assert not first.ownership.owns(slot)
    assert first.ownership.holds(slot)
    assert not second.ownership.holds(slot)
    first.busy[slot].set()
    await node.time.settle()
    assert second.ownership.owns(slot)
    assert not first.ownership.holds(slot)


async def test_a_slot_that_is_wanted_again_is_taken_over_anew_without_letting_go(node: Node) -> None:
    """The worker that it was meant for died while the work was coming to its checkpoint."""
    first = await node.worker()
    slot = min(wanted_slots(1, {0, 1}))
    first.busy[slot] = asyncio.Event()
    second = await node.worker()
    await node.time.advance(3)
    second.die()
    await node.time.advance(1)
    assert not first.ownership.owns(slot)
    first.busy[slot].set()
    await node.time.settle()
    assert first.ownership.owns(slot)
    assert first.gained[-1] == {slot}
    assert node.kernel.slots[slot] is first.locks


async def test_a_worker_that_hangs_keeps_its_slots(node: Node) -> None:
    first, second = await settled(node, 2)
    first.task.cancel()
    had = first.ownership.owned
    await node.time.advance(60)
    assert second.ownership.owned == ALL - had


async def test_leaving_gives_idle_slots_back_at_once(node: Node) -> None:
    first, second = await settled(node, 2)
    leaving = asyncio.create_task(first.ownership.leave())
    await node.time.settle()
    assert leaving.result() == frozenset()
    assert first.ownership.owned == frozenset()
    await node.time.advance(0.2)
    assert second.ownership.owned == ALL
    assert first.task.done()


async def test_leaving_ends_the_membership_before_any_slot_is_given_back(node: Node) -> None:
    """Else the others would not take what is given back, and wait for the one that goes."""
    first, second = await settled(node, 2)
    seen: list[frozenset[int]] = []
    second.ownership.released = lambda slot: seen.append(second.locks.members())  # type: ignore[method-assign]
    await first.ownership.leave()
    assert set(seen) == {frozenset({1})}


async def test_leaving_waits_for_busy_slots_but_not_for_ever(node: Node) -> None:
    """A slot whose work doesn't get to a checkpoint stays locked: the end of the process frees it."""
    first, second = await settled(node, 2)
    quick, stuck = sorted(first.ownership.owned)[:2]
    first.busy = {quick: asyncio.Event(), stuck: asyncio.Event()}
    leaving = asyncio.create_task(first.ownership.leave(within=8))
    await node.time.advance(5)
    first.busy[quick].set()
    await node.time.advance(2.9)
    assert not leaving.done()
    assert second.ownership.owned == ALL - {stuck}
    await node.time.advance(0.2)
    assert leaving.result() == {stuck}
    assert node.kernel.slots[stuck] is first.locks


async def test_hints_for_slots_of_others_are_ignored(node: Node) -> None:
    first, second = await settled(node, 2)
    slot = min(first.ownership.owned)
    del node.kernel.slots[slot]
    second.ownership.released(slot)
    assert not second.ownership.holds(slot)


async def test_a_failed_hand_over_keeps_the_lock_and_ends_the_worker(node: Node) -> None:
    first = await node.worker()
    first.broken = True
    await node.worker()
    await node.time.advance(3)
    with pytest.raises(OSError, match="no space left"):
        await first.task
    assert len(node.kernel.slots) == SLOTS


async def test_a_failed_take_over_ends_the_worker(node: Node) -> None:
    """Locked slots whose pods nobody runs would wait for ever."""
    first, second = await settled(node, 2)
    second.broken = True
    first.die()
    await node.time.advance(0.5)
    with pytest.raises(OSError, match="no space left"):
        await second.task


async def test_four_workers_that_start_together_share_the_slots(node: Node) -> None:
    workers = await settled(node, 4)
    assert [worker.ownership.owned for worker in workers] == [wanted_slots(i, {0, 1, 2, 3}) for i in range(4)]
    assert all(worker.ownership.members == {0, 1, 2, 3} for worker in workers)
