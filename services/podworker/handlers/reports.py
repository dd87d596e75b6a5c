"""Tells the bus how pods are: the newest report per pod, again after every loss, at most once a second for progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from services.podworker.core.model import PodMemory, RuntimePod
from services.podworker.core.state import sync_state
from services.podworker.handlers.pod_record import PodRecord
from shared.bus import Bus, BusUnavailable
from shared.contracts.envelope import VERSION
from shared.contracts.registry import POD_REPORT
from shared.contracts.status import PodReport, RunningContainer
from shared.kube.names import SANDBOX_CONTAINER
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.podworker.reports")

PROGRESS_SECONDS = 1.0
SETTLED_SECONDS = 10.0
"""After this long every worker's connection is back, and its buffer written."""
_RETRY_SECONDS = 0.5


class Reports:
    """`run` is a guarded task. Nothing here waits for the bus."""

    def __init__(self, bus: Bus, clock: Clock, owner: Callable[[], int]) -> None:
        self._bus = bus
        self._clock = clock
        self._owner = owner
        self._latest: dict[str, PodReport | None] = {}
        """None = withdraw the key."""
        self._dirty: dict[str, None] = {}
        self._work = asyncio.Event()
        self._clean = asyncio.Event()
        self._clean.set()
        self._progress_at: dict[str, float] = {}
        bus.on_reconnect(self._reconnected)

    def publish(self, memory: PodMemory, runtime: RuntimePod, record: PodRecord, *, with_body: bool) -> None:
        """Only when something but the time differs from what was published last."""
        report = self._report(memory, runtime, record, with_body=with_body)
        last = self._latest.get(memory.uid)
        if last is not None and msgspec.structs.replace(report, ts=last.ts, rev=last.rev) == last:
            return
        self._latest[memory.uid] = report
        self._mark(memory.uid)

    def publish_later(self, memory: PodMemory, runtime: RuntimePod, record: PodRecord) -> None:
        """A pull's progress: from the loop, dropped when the last one is younger than a second."""
        now = self._clock.now()
        if now - self._progress_at.get(memory.uid, 0.0) < PROGRESS_SECONDS:
            return
        self._progress_at[memory.uid] = now
        self.publish(memory, runtime, record, with_body=False)

    def withdraw(self, uid: str) -> None:
        """The pod is gone: so is its key."""
        self._latest[uid] = None
        self._progress_at.pop(uid, None)
        self._mark(uid)

    def leave(self, uid: str) -> None:
        """Another worker owns the pod now: its key stays, we no longer write it."""
        self._latest.pop(uid, None)
        self._dirty.pop(uid, None)
        self._progress_at.pop(uid, None)

    def _reconnected(self) -> None:
        """The store may be new. And once more a little later: what a former owner of a pod had in its buffer when the
        bus went could land behind the first."""
        self.again()
        asyncio.get_running_loop().call_later(SETTLED_SECONDS, self.again)

    def again(self) -> None:
        """Put everything again."""
        for uid in self._latest:
            self._mark(uid)

    def known(self, uid: str) -> bool:
        return self._latest.get(uid) is not None

    async def run(self) -> None:
        """Put what is dirty, newest value first come; what fails stays dirty."""
        while True:
            await self._work.wait()
            self._work.clear()
            for uid in list(self._dirty):
                if uid not in self._dirty:
                    continue
                report = self._latest.get(uid)
                del self._dirty[uid]
                try:
                    if report is None:
                        await self._bus.delete(POD_REPORT, uid)
                        if self._latest.get(uid) is None:
                            self._latest.pop(uid, None)
                    else:
                        await self._bus.put(POD_REPORT, report, uid)
                except BusUnavailable as error:
                    log.debug("report waits uid=%s error=%s", uid, error)
                    if uid in self._latest:
                        self._mark(uid)
                    await asyncio.sleep(_RETRY_SECONDS)
                    break
            if not self._dirty:
                self._clean.set()

    async def flush(self) -> None:
        """Wait until all is published; the caller bounds it."""
        await self._clean.wait()

    def _mark(self, uid: str) -> None:
        self._dirty[uid] = None
        self._clean.clear()
        self._work.set()

    def _report(self, memory: PodMemory, runtime: RuntimePod, record: PodRecord, *, with_body: bool) -> PodReport:
        assert memory.status is not None
        termination = memory.termination
        return PodReport(
            v=VERSION,
            node=self._bus.node,
            ts=self._clock.now(),
            uid=memory.uid,
            namespace=memory.namespace,
            name=memory.name,
            source=memory.source,
            gen=memory.gen,
            hash=memory.hash,
            rev=record.rev,
            owner=self._owner(),
            state=sync_state(memory, runtime),
            deletion_at=termination.at if termination is not None else 0.0,
            deletion_grace=termination.grace if termination is not None else 0,
            cgroup_parent=record.cgroup_parent,
            status=memory.status,
            containers=_running(runtime),
            body=msgspec.Raw(record.body) if with_body and record.body else msgspec.UNSET,
        )


def _running(runtime: RuntimePod) -> list[RunningContainer]:
    sandboxes = [
        RunningContainer(name=SANDBOX_CONTAINER, id=s.id, pid=s.pid, started_at=s.created_at, attempt=s.attempt)
        for s in runtime.sandboxes
        if s.ready
    ]
    return sandboxes + [
        RunningContainer(
            name=c.name,
            id=c.id,
            pid=c.pid,
            started_at=c.started_at or c.created_at,
            image_id=c.image_id,
            attempt=c.attempt,
        )
        for c in runtime.running
    ]
