"""One owner per pod, whatever dies: the real worker processes on the model engine, with a real nats-server.

Updates pour in while workers and the server are killed, ended and stopped, and the server's store is wiped. At the
end: no pod was ever handled by two workers at once or ran twice, none went back to an older version or was restarted
for nothing, and each is at its last.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from services.podworker.core.placement import owner
from shared.kube.ids import slot_of
from tests.support.engine_process import EngineProcess
from tests.support.engine_record import backwards, doubles, repeats, running, runs
from tests.support.eventually import eventually_async
from tests.support.nats_server import NatsServer
from tests.support.ownership_journal import Entry, handlings, missing, overlaps, parse, reversals, takeovers
from tests.support.played_source import PlayedSource, ShownPods, bus_of
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.e2e, pytest.mark.nats]

PODS = 110
WORKERS = 3
UPDATES_PER_SECOND = 300


class Chaos:
    """The processes, and what can be done to them."""

    def __init__(self, directory: Path, server: NatsServer) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.data.mkdir()
        (self.data / "instance").write_text("chaos")
        self.server = server
        self.engine = EngineProcess(directory)
        self.workers: list[ServiceProcess] = []
        self.journals: list[Path] = []
        self.deaths: dict[str, int] = {}

    async def add_worker(self) -> ServiceProcess:
        journal = self.directory / f"journal-{len(self.journals)}"
        self.journals.append(journal)
        environment = {
            **self.engine.environment,
            "PODBUS_TEST_JOURNAL": str(journal),
            "PODBUS_WORKERS": str(WORKERS),
            "PODBUS_LOG_LEVEL": "INFO",
        }
        worker = ServiceProcess("podworker", self.data, self.server, environment=environment)
        self.workers.append(worker)
        await asyncio.to_thread(worker.prepare)
        worker.spawn()
        return worker

    async def kill_worker(self) -> None:
        """kill -9 of the oldest, and a new one."""
        worker = self.workers.pop(0)
        self.deaths[str(worker.pid)] = time.monotonic_ns()
        await asyncio.to_thread(worker.kill)
        await self.add_worker()

    async def end_worker(self) -> None:
        """SIGTERM: it hands its pods over and leaves."""
        worker = self.workers.pop(0)
        assert await asyncio.to_thread(worker.stop) == 0
        await self.add_worker()

    async def kill_all_workers(self) -> None:
        for worker in self.workers:
            self.deaths[str(worker.pid)] = time.monotonic_ns()
            await asyncio.to_thread(worker.kill)
        self.workers.clear()
        for _ in range(WORKERS):
            await self.add_worker()

    async def pause_worker(self) -> None:
        """It hangs for five seconds, and its pods wait."""
        pid = self.workers[0].pid
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(5)
        os.kill(pid, signal.SIGCONT)

    async def kill_server(self) -> None:
        await self._restart_server(signal.SIGKILL)

    async def end_server(self) -> None:
        await self._restart_server(signal.SIGTERM)

    async def wipe_server(self) -> None:
        """Its store is gone when it's back."""
        await self._restart_server(signal.SIGKILL, wipe=True)

    async def _restart_server(self, how: signal.Signals, *, wipe: bool = False) -> None:
        await asyncio.to_thread(self.server.stop, how)
        if wipe:
            self.server.wipe()
        await asyncio.sleep(1)
        await asyncio.to_thread(self.server.start)

    def entries(self) -> list[Entry]:
        return [e for journal in self.journals if journal.exists() for e in parse(journal.read_text())]

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.engine.close()


@pytest.fixture
async def chaos(tmp_path: Path, nats_server: NatsServer) -> AsyncIterator[Chaos]:
    made = Chaos(tmp_path, nats_server)
    yield made
    made.close()


async def run_chaos(chaos: Chaos, updates: int, faults: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """`updates` edits of random pods, the faults spread evenly among them, then the verdict."""
    rng = random.Random(1)
    source_bus, status_bus = await bus_of(chaos.server, "source"), await bus_of(chaos.server, "status")
    source, shown = PlayedSource(source_bus, rng), ShownPods(status_bus)
    await shown.listed()
    for number in range(PODS):
        await source.add(f"pod-{number}")
    for _ in range(WORKERS):
        await chaos.add_worker()

    def all_shown() -> bool:
        wrong = behind(source, shown)
        assert not wrong, f"{len(wrong)} pods, such as {list(wrong.items())[:3]}"
        return True

    await eventually_async(all_shown, within=60, every=0.2)
    names = list(source.pods)
    pending = {updates * (n + 1) // (len(faults) + 1): fault for n, fault in enumerate(faults)}
    running_faults: list[asyncio.Task[None]] = []
    in_turn = asyncio.Lock()

    async def happen(fault: Callable[[], Awaitable[None]]) -> None:
        async with in_turn:  # on a slow machine one may last until the next is due
            await fault()

    start = time.monotonic()
    for number in range(updates):
        if (fault := pending.get(number)) is not None:
            running_faults.append(asyncio.create_task(happen(fault)))
        await source.edit(rng.choice(names))
        await asyncio.sleep(max(0.0, (number + 1) / UPDATES_PER_SECOND - (time.monotonic() - start)) and 0.001)
    await asyncio.gather(*running_faults)
    await source.everything()
    took = time.monotonic() - start
    try:
        await eventually_async(all_shown, within=60, every=0.2)
    finally:
        print(report(chaos, source, took))
    judge(chaos, source)
    shown.close()
    for bus in (source_bus, status_bus):
        await bus.drain()


def behind(source: PlayedSource, shown: ShownPods) -> dict[str, object]:
    """What isn't as it should be at the end: pods not at their last version, or keys of pods that are gone."""
    final = {pod.uid: pod.gen for pod in source.pods.values()}
    now = {uid: r.gen for uid, r in shown.reports.items() if r.status.phase == "Running" or uid not in final}
    wrong: dict[str, object] = dict(missing(final, now))
    return wrong | dict.fromkeys(now.keys() - final.keys(), "left behind")


def judge(chaos: Chaos, source: PlayedSource) -> None:
    handled = handlings(chaos.entries(), chaos.deaths)
    assert overlaps(handled, source.name_of) == []
    assert reversals(handled) == []
    ran = runs(chaos.engine.record())
    assert doubles(ran) == []
    assert backwards(ran) == []
    assert repeats(ran) == [], "restarted without an edit"
    assert missing({f"default/{name}": v for name, v in source.versions.items()}, running(ran)) == {}
    with sqlite3.connect(f"file:{chaos.data / 'pods.db'}?mode=ro", uri=True) as database:
        rows = {uid for (uid,) in database.execute("SELECT uid FROM pods")}
    assert rows == {pod.uid for pod in source.pods.values()}


def report(chaos: Chaos, source: PlayedSource, took: float) -> str:
    handled = handlings(chaos.entries(), chaos.deaths)
    times = takeovers(handled, chaos.deaths)
    middle = [f"{t[0]}/{t[len(t) // 2]}/{t[-1]} ms" for t in times.values() if t]
    containers = len(runs(chaos.engine.record()))
    return (
        f"{source.updates} updates in {took:.0f} s, {len(handled)} looks, {containers} containers,"
        f" takeovers first/median/last: {', '.join(middle)}"
    )


async def test_a_killed_workers_pods_move_and_no_others(chaos: Chaos) -> None:
    """Four workers, forty pods."""
    source_bus, status_bus = await bus_of(chaos.server, "source"), await bus_of(chaos.server, "status")
    source, shown = PlayedSource(source_bus, random.Random(1)), ShownPods(status_bus)
    await shown.listed()
    for _ in range(4):
        await chaos.add_worker()
    for number in range(40):
        await source.add(f"pod-{number}")

    def owners(workers: int) -> dict[str, int] | None:
        """By UID, once as many own pods as are alive and each is where placement puts it."""
        found = {uid: report.owner for uid, report in shown.reports.items() if report.status.phase == "Running"}
        present = set(found.values())
        assert len(found) == 40 and len(present) == workers, found
        for uid, worker in found.items():
            assert worker == owner(slot_of("default", source.name_of[uid].partition("/")[2]), present), uid
        return found

    before = await eventually_async(lambda: owners(4), within=30, every=0.2)
    entries = chaos.entries()
    dead = chaos.workers.pop(0)
    pid = str(dead.pid)
    await asyncio.to_thread(dead.kill)
    after = await eventually_async(lambda: owners(3), within=15, every=0.2)
    (lost,) = set(before.values()) - set(after.values())
    assert {uid for uid in before if before[uid] != after[uid]} == {uid for uid in before if before[uid] == lost}
    assert {e.uid for e in entries if e.worker == pid} >= {uid for uid in before if before[uid] == lost}
    assert len(runs(chaos.engine.record())) == 40, "a container was restarted"
    shown.close()
    for bus in (source_bus, status_bus):
        await bus.drain()


@pytest.mark.timeout(240)
async def test_no_pod_ever_has_two_owners_while_workers_and_server_die(chaos: Chaos) -> None:
    """A short run with each kind of fault once."""
    faults = [chaos.kill_worker, chaos.kill_server, chaos.end_worker, chaos.wipe_server, chaos.kill_worker]
    await run_chaos(chaos, 4_000, faults)


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_20000_updates_with_every_fault(chaos: Chaos) -> None:
    faults = [
        chaos.kill_worker,
        chaos.kill_server,
        chaos.kill_worker,
        chaos.end_server,
        chaos.end_worker,
        chaos.wipe_server,
        chaos.pause_worker,
        chaos.kill_worker,
        chaos.kill_all_workers,
        chaos.kill_server,
    ]
    await run_chaos(chaos, 20_000, faults)
