"""Plays source for pods that are edited all the time, and follows what podworker says of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping

import msgspec

from shared.bus import BucketWatch, Bus, BusUnavailable, connect
from shared.contracts.pods import PodDesired, SourceMarker
from shared.contracts.registry import POD_DESIRED, POD_REPORT, SOURCE_MARKER, STATUS
from shared.contracts.status import PodReport
from tests.support.nats_server import NatsServer

_PADDING = "x" * 6000
"""Makes a body about as large as a real pod's."""


class PlayedSource:
    """`pods` by name. Each edit is one update on the bus: of a label, of the container, or, as an edited static pod
    has it, of everything with a new UID. What the bus doesn't take is put again, newest first, as source does."""

    def __init__(self, bus: Bus, rng: random.Random) -> None:
        self._bus = bus
        self._rng = rng
        self._gen = 0
        self.pods: dict[str, PodDesired] = {}
        self.versions: dict[str, int] = {}
        """Of the container, by name: grows with every edit that has to restart it."""
        self.name_of: dict[str, str] = {}
        """Every UID that ever was -> its pod's name, `namespace/name`."""
        self.updates = 0
        self._again = asyncio.Event()
        bus.on_reconnect(self._again.set)

    async def add(self, name: str) -> None:
        self.versions[name] = 1
        await self._write(name, self._new_uid(name))

    async def edit(self, name: str) -> None:
        """One update, of a random kind."""
        kind = self._rng.random()
        old = self.pods[name]
        if kind < 0.85:
            await self._write(name, old.uid)
            return
        self.versions[name] += 1
        if kind < 0.97:
            await self._write(name, old.uid)
            return
        await self._write(name, self._new_uid(name))
        await self._settle(self._remove, old.uid)

    async def everything(self) -> None:
        """Put all of it: the store may be new."""
        self._again.clear()
        for pod in list(self.pods.values()):
            await self._put(pod)
        await self._mark()

    # -- inside

    def _new_uid(self, name: str) -> str:
        uid = f"{self._rng.getrandbits(128):032x}"
        self.name_of[uid] = f"default/{name}"
        return uid

    async def _write(self, name: str, uid: str) -> None:
        self._gen += 1
        self.updates += 1
        known = self.pods.get(name)
        pod = PodDesired(
            v=1,
            node="n1",
            ts=0.0,
            uid=uid,
            namespace="default",
            name=name,
            source="file",
            gen=self._gen,
            hash=f"h{self._gen}",
            seen=known.seen if known is not None and known.uid == uid else float(self._gen),
            body=msgspec.Raw(_body(name, uid, self._gen, self.versions[name])),
        )
        new = known is None or known.uid != uid
        self.pods[name] = pod
        await self._settle(self._put, pod)
        if new:
            await self._settle(self._mark)

    async def _settle(self, do, *arguments) -> None:  # type: ignore[no-untyped-def]
        """Until the bus has taken it."""
        while True:
            try:
                if self._again.is_set():
                    await self.everything()
                await do(*arguments)
                return
            except BusUnavailable:
                await asyncio.sleep(0.05)
            except TimeoutError:  # sent into a connection that was broken already
                self._again.set()

    async def _put(self, pod: PodDesired) -> None:
        self._check()
        await asyncio.wait_for(self._bus.put(POD_DESIRED, pod, pod.uid), 2)

    async def _remove(self, uid: str) -> None:
        self._check()
        await asyncio.wait_for(self._bus.delete(POD_DESIRED, uid), 2)

    async def _mark(self) -> None:
        self._check()
        uids = [pod.uid for pod in self.pods.values()]
        marker = SourceMarker(v=1, node="n1", ts=0.0, source="file", ready=True, epoch="e", uids=uids)
        await asyncio.wait_for(self._bus.put(SOURCE_MARKER, marker, "file"), 2)

    def _check(self) -> None:
        if not self._bus.connected:
            raise BusUnavailable("not connected")


class ShownPods:
    """The status bucket, followed as api does it."""

    def __init__(self, bus: Bus) -> None:
        self.reports: dict[str, PodReport] = {}
        self._watch = BucketWatch(bus, STATUS, self._list, self._change)
        self._task = asyncio.create_task(self._watch.run())

    async def listed(self) -> None:
        await self._watch.listed.wait()

    def kick(self) -> None:
        """List again."""
        self._watch.relist()

    def close(self) -> None:
        self._task.cancel()

    def _list(self, entries: Mapping[str, bytes]) -> None:
        self.reports = {}
        for key, value in entries.items():
            self._change(key, value)

    def _change(self, key: str, value: bytes | None) -> None:
        if (uid := POD_REPORT.id_of(key)) is None:
            return
        if value is None:
            self.reports.pop(uid, None)
        else:
            self.reports[uid] = msgspec.json.decode(value, type=PodReport)


async def bus_of(server: NatsServer, service: str) -> Bus:
    bus = await connect(server.credentials(service), node="n1", service=service, name=service)
    await bus.ensure_buckets()
    return bus


def _body(name: str, uid: str, gen: int, version: int) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": uid,
                "labels": {"gen": str(gen)},
                "annotations": {"padding": _PADDING},
            },
            "spec": {
                "terminationGracePeriodSeconds": 5,
                "containers": [
                    {
                        "name": "main",
                        "image": "busybox:1.36",
                        "command": ["sleep"],
                        "env": [{"name": "VERSION", "value": str(version)}],
                    }
                ],
            },
        }
    )
