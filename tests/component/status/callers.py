"""Those who speak with status: a worker that hands over and reports, and an API that asks and watches."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shared.bus import BucketWatch, Bus, connect
from shared.contracts.events import Event, EventBatch, EventQuery, InvolvedObject, RecordedEvent
from shared.contracts.registry import EVENTS_HAND_OVER, EVENTS_QUERY, NODE_REPORT, RUNTIME_REPORT, STATUS
from shared.contracts.status import NodeReport, RuntimeReport
from tests.support.nats_server import NatsServer


def an_event(id_: str, *, message: str = "Started container c", name: str = "web", when: float = 0.0) -> Event:
    """`when`: seconds since the epoch; 0 = now."""
    return Event(
        id=id_,
        time=when or time.time(),
        type="Normal",
        reason="Started",
        message=message,
        involved=InvolvedObject(kind="Pod", name=name, namespace="default", uid=f"uid-{name}"),
        component="podworker",
    )


class Callers:
    """Made by the fixture; both watch until `stop`."""

    worker: Bus
    api: Bus

    def __init__(self, nats: NatsServer) -> None:
        self._nats = nats
        self._watching: asyncio.Task[None] | None = None
        self.node_versions: list[dict[str, Any]] = []
        """Every v1.Node that the API saw, the oldest first."""
        self.node: dict[str, Any] | None = None
        """What the bucket holds now."""

    async def start(self) -> None:
        self.worker = await connect(
            self._nats.credentials("podworker"), node="n1", service="podworker", name="podworker-0"
        )
        self.api = await connect(self._nats.credentials("api"), node="n1", service="api", name="api")
        watch = BucketWatch(self.api, STATUS, self._on_list, self._on_change)
        self._watching = asyncio.create_task(watch.run())

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await self.worker.drain()
        await self.api.drain()

    def _on_list(self, entries: Mapping[str, bytes]) -> None:
        self._on_change(NODE_REPORT.key(), entries.get(NODE_REPORT.key()))

    def _on_change(self, key: str, value: bytes | None) -> None:
        if key != NODE_REPORT.key():
            return
        self.node = None if value is None else json.loads(bytes(msgspec.json.decode(value, type=NodeReport).body))
        if self.node is not None:
            self.node_versions.append(self.node)

    async def hand_over(self, events: Sequence[Event], *, within: float = 5.0) -> list[str]:
        """Raises what the bus raises."""
        reply = await self.worker.request(EVENTS_HAND_OVER, EventBatch(events=list(events)), timeout=within)
        return reply.ids

    async def events(self, **query: Any) -> list[RecordedEvent]:
        return (await self.api.request(EVENTS_QUERY, EventQuery(**query))).events

    async def pod_events(self, name: str = "web") -> list[tuple[str, int]]:
        """(message, count), newest last."""
        return [(event.message, event.count) for event in await self.events(namespace="default", name=name)]

    async def node_events(self) -> list[str]:
        """Reasons, one per occurrence."""
        return [event.reason for event in await self.events(name="n1") for _ in range(event.count)]

    async def report_runtime(
        self, *, healthy: bool = True, ago: float = 0.0, message: str = "", subnets: Sequence[str] = ()
    ) -> None:
        """Say what the holder of slot 0 says."""
        now = time.time() - ago
        report = RuntimeReport(
            v=1,
            node="n1",
            ts=now,
            healthy=healthy,
            message=message,
            relisted_at=now,
            engine_version="20.10.24",
            subnets=list(subnets),
        )
        await self.worker.put(RUNTIME_REPORT, report)

    def condition(self, kind: str) -> dict[str, str]:
        """Of the node as the bucket holds it. AssertionError while there is none."""
        assert self.node is not None
        found: dict[str, str] = next(c for c in self.node["status"]["conditions"] if c["type"] == kind)
        return found

    def is_ready(self) -> bool:
        return self.condition("Ready")["status"] == "True"
