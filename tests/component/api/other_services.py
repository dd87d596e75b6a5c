"""The other side of the bus: what source, podworker, status and stats say, by a test's hand."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from shared.bus import Bus, connect
from shared.contracts.pods import PodDesired, SourceMarker
from shared.contracts.registry import (
    EVENTS_QUERY,
    NODE_REPORT,
    POD_DESIRED,
    POD_REPORT,
    RUNNING_PODS,
    SOURCE_MARKER,
    SOURCES,
    STREAM,
    SUMMARY,
    WORKER_HEARTBEAT,
)
from shared.contracts.sources import SourceList
from shared.contracts.stats import SummaryQuery, SummaryReply
from shared.contracts.status import NodeReport, PodReport
from shared.contracts.streams import StreamCommand, StreamTicket
from shared.contracts.worker import Heartbeat, RunningContainerImage, RunningPod, RunningPods
from shared.kube.status import ContainerState, ContainerStatus, PodStatus, StateRunning
from shared.streams import Handler, StreamServer
from tests.support.nats_server import NatsServer

CONTAINER = "4f5e" * 16


def running_status(*, container: str = "c1", container_id: str = CONTAINER) -> PodStatus:
    return PodStatus(
        phase="Running",
        container_statuses=[
            ContainerStatus(
                name=container,
                state=ContainerState(running=StateRunning(started_at="2026-12-01T00:00:00Z")),
                last_state=ContainerState(),
                ready=True,
                restart_count=0,
                image="busybox:1.36",
                image_id="docker://sha256:ab",
                container_id=f"docker://{container_id}",
                started=True,
            )
        ],
        qos_class="BestEffort",
    )


class OtherServices:
    """Publishes what a test tells it to, and takes it back at the end."""

    def __init__(self, nats: NatsServer, directory: Path) -> None:
        self._nats = nats
        self._buses: dict[str, Bus] = {}
        self._keys: list[tuple[str, Any, str]] = []
        self.streams = StreamServer(directory / "worker-0.sock")
        self.log_handler: Handler | None = None
        self.commands: list[StreamCommand] = []
        self.summary = b'{"node":{"nodeName":"n1"},"pods":[]}'
        self.summary_queries: list[SummaryQuery] = []

    async def start(self) -> None:
        for name in ("source", "podworker", "status", "stats"):
            self._buses[name] = await connect(
                self._nats.credentials(name), node="n1", service=name, name=f"{name}-test"
            )
        await self.streams.start()

    async def stop(self) -> None:
        for service, key, id_ in self._keys:
            await self._buses[service].delete(key, id_)
        for bus in self._buses.values():
            await bus.drain()
        await self.streams.stop()

    async def want(self, name: str, *, namespace: str = "ns", uid: str = "", body: Any = None) -> str:
        """A desired pod with one container c1; its UID."""
        uid = uid or f"uid-{name}"
        made = body or {
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "spec": {"containers": [{"name": "c1", "image": "busybox:1.36"}]},
        }
        desired = PodDesired(
            v=1,
            node="n1",
            ts=time.time(),
            uid=uid,
            namespace=namespace,
            name=name,
            source="file",
            gen=1,
            hash="h",
            seen=time.time(),
            body=msgspec.Raw(msgspec.json.encode(made)),
        )
        await self._put("source", POD_DESIRED, desired, uid)
        return uid

    async def report(self, name: str, status: PodStatus, *, namespace: str = "ns", uid: str = "") -> None:
        uid = uid or f"uid-{name}"
        report = PodReport(
            v=1,
            node="n1",
            ts=time.time(),
            uid=uid,
            namespace=namespace,
            name=name,
            source="file",
            gen=1,
            hash="h",
            rev=1,
            owner=0,
            state="sync",
            status=status,
        )
        await self._put("podworker", POD_REPORT, report, uid)

    async def mark(self, marker: SourceMarker) -> None:
        await self._put("source", SOURCE_MARKER, marker, marker.source)

    async def publish_node(self, body: bytes) -> None:
        await self._put("status", NODE_REPORT, NodeReport(v=1, node="n1", ts=time.time(), body=msgspec.Raw(body)), "")

    async def beat(self) -> None:
        beat = Heartbeat(worker=0, at=time.time(), slots=256, pods=0)
        await self._buses["podworker"].hint(WORKER_HEARTBEAT, beat, "0")

    async def _put(self, service: str, key: Any, body: Any, id_: str) -> None:
        await self._buses[service].put(key, body, id_)
        self._keys.append((service, key, id_))

    async def answer(self, *what: Any) -> None:
        """Serve these requests from now on."""
        handlers: dict[str, tuple[str, Callable[[Any], Awaitable[Any]]]] = {
            SOURCES.what: ("source", self._sources),
            STREAM.what: ("podworker", self._stream),
            RUNNING_PODS.what: ("podworker", self._running),
            SUMMARY.what: ("stats", self._summary),
            EVENTS_QUERY.what: ("status", self._events),
        }
        for request in what:
            service, handler = handlers[request.what]
            await self._buses[service].serve(request, handler)
            await self._buses[service].flush()

    async def _sources(self, query: Any) -> SourceList:
        return SourceList(sources=[SOURCE_MARKER.example])

    async def _stream(self, command: StreamCommand) -> StreamTicket:
        self.commands.append(command)
        assert self.log_handler is not None
        return self.streams.issue(self.log_handler)

    async def _running(self, query: Any) -> RunningPods:
        image = RunningContainerImage(name="c1", image="sha256:ab")
        return RunningPods(pods=[RunningPod(namespace="ns", name="p1", uid="u1", containers=[image])])

    async def _summary(self, query: SummaryQuery) -> SummaryReply:
        self.summary_queries.append(query)
        if len(self.summary) <= 256 << 10:
            return SummaryReply(summary=msgspec.Raw(self.summary))
        summary = self.summary

        async def page(reader: Any, writer: Any) -> None:
            writer.write(summary)

        return SummaryReply(ticket=self.streams.issue(page))

    async def _events(self, query: Any) -> Any:
        assert query.namespace == "ns"
        return EVENTS_QUERY.example_reply
