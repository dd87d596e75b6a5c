"""source itself, all of it but its process, and a reader of what it publishes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from cli.db import db_upgrade
from services.source.app import build
from shared.bus import BucketWatch, Bus, connect
from shared.contracts.pods import PodDesired, SourceMarker
from shared.contracts.registry import PODS
from shared.runtime.clock import SystemClock
from shared.runtime.config import KubeletConfig
from shared.runtime.service import Context
from shared.runtime.settings import Settings
from shared.runtime.tasks import GuardedTasks
from tests.support.nats_server import NatsServer

POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers: [{{name: c, image: {image}}}]\n"


def manifest(name: str, image: str = "busybox:1.36") -> str:
    return POD.format(name=name, image=image)


@dataclass
class Shown:
    """What a reader of the bucket sees."""

    pods: dict[str, PodDesired] = field(default_factory=dict)
    markers: dict[str, SourceMarker] = field(default_factory=dict)
    history: list[frozenset[str]] = field(default_factory=list)
    """The pods' names after each change."""

    def on_list(self, entries: Mapping[str, bytes]) -> None:
        self.pods, self.markers = {}, {}
        for key, value in entries.items():
            self.on_change(key, value)

    def on_change(self, key: str, value: bytes | None) -> None:
        if key.startswith("source."):
            name = key.removeprefix("source.")
            self.markers.pop(name, None)
            if value is not None:
                self.markers[name] = msgspec.json.decode(value, type=SourceMarker)
        elif value is None:
            self.pods.pop(key.removeprefix("pod."), None)
        else:
            pod = msgspec.json.decode(value, type=PodDesired)
            self.pods[pod.uid] = pod
        self.history.append(frozenset(self.names))

    @property
    def marker(self) -> SourceMarker | None:
        """Of the directory."""
        return self.markers.get("file")

    @property
    def names(self) -> set[str]:
        return {pod.name for pod in self.pods.values()}

    def image_of(self, name: str) -> str:
        body = next(msgspec.json.decode(p.body) for p in self.pods.values() if p.name == name)
        return str(body["spec"]["containers"][0]["image"])

    @property
    def errors(self) -> list[str]:
        return [e.message for e in self.marker.errors] if self.marker else []

    def told(self, source: str) -> list[str]:
        """Errors and warnings in the marker of a source."""
        marker = self.markers[source]
        return [problem.message for problem in (*marker.errors, *marker.warnings)]


@asynccontextmanager
async def running_source(
    server: NatsServer, data: Path, manifests: Path | None, config: KubeletConfig | None = None
) -> AsyncIterator[Bus]:
    """source itself, until the block ends."""
    db_upgrade(data)
    bus = await connect(server.credentials("source"), node="n1", service="source", name="source")
    settings = Settings(data=data, manifests=manifests, node_name="n1", config=config or KubeletConfig())
    service = await build(Context(settings, bus, SystemClock(), "source"))
    tasks = GuardedTasks()
    await service.recover()
    await service.subscribe()
    tasks.start(service.tasks)
    await asyncio.wait_for(service.ready(), 10)
    try:
        yield bus
    finally:
        await service.stop()
        await tasks.cancel()
        await bus.drain()


@asynccontextmanager
async def reader(server: NatsServer) -> AsyncIterator[Shown]:
    bus = await connect(server.credentials("podworker"), node="n1", service="podworker", name="reader")
    shown = Shown()
    watch = asyncio.create_task(BucketWatch(bus, PODS, shown.on_list, shown.on_change).run())
    try:
        yield shown
    finally:
        watch.cancel()
        await bus.drain()
