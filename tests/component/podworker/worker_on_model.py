"""A podworker in this process: real bus, real pods.db, the model engine. Dying is dropping it without `stop`."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from services.podworker.app import build
from shared.bus import Bus, BusUnavailable, connect
from shared.contracts.pods import PodDesired, SourceMarker, SourceName
from shared.contracts.registry import POD_DESIRED, SOURCE_MARKER
from shared.contracts.status import PodReport
from shared.runtime.clock import SystemClock
from shared.runtime.service import Context, Service
from shared.runtime.settings import Settings
from shared.runtime.tasks import GuardedTasks
from tests.support.model_runtime import ModelRuntime
from tests.support.nats_server import NatsServer
from tests.support.played_source import ShownPods

ENGINE: list[ModelRuntime] = []
"""The engine that the next worker finds (PODBUS_TEST_RUNTIME)."""


def the_engine(settings: Settings, instance: str) -> ModelRuntime:
    return ENGINE[-1]


def pod_body(name: str, uid: str, *, command: tuple[str, ...] = ("sleep",), **spec: object) -> bytes:
    """A v1.Pod as source publishes it."""
    annotations = spec.pop("annotations", {})
    ports = spec.pop("ports", [])
    container = {"name": "c", "image": "busybox:1.36", "command": list(command), "ports": ports}
    return msgspec.json.encode(
        {
            "metadata": {"name": name, "namespace": "default", "uid": uid, "annotations": annotations},
            "spec": {"terminationGracePeriodSeconds": 2, "containers": [container], **spec},
        }
    )


@dataclass
class Desired:
    """Plays source: says what should run."""

    bus: Bus
    gen: int = 0
    pods: dict[str, PodDesired] = field(default_factory=dict)
    shown: ShownPods | None = None

    @property
    def reports(self) -> dict[str, PodReport]:
        """What the workers say, followed as status and api do."""
        assert self.shown is not None
        return self.shown.reports

    async def put(
        self, name: str, uid: str, body: bytes | None = None, *, seen: float = 1.0, source: SourceName = "file"
    ) -> None:
        self.gen += 1
        pod = PodDesired(
            v=1,
            node="n1",
            ts=1.0,
            uid=uid,
            namespace="default",
            name=name,
            source=source,
            gen=self.gen,
            hash=f"h{self.gen}",
            seen=seen,
            body=msgspec.Raw(body or pod_body(name, uid)),
        )
        self.pods[uid] = pod
        await self.again()

    async def drop(self, uid: str) -> None:
        del self.pods[uid]
        await self.mark()
        await self.bus.delete(POD_DESIRED, uid)

    async def mark(self) -> None:
        marker = SourceMarker(v=1, node="n1", ts=1.0, source="file", ready=True, epoch="e", uids=list(self.pods))
        await self.bus.put(SOURCE_MARKER, marker, "file")

    async def again(self) -> None:
        """Everything, as source does it: until the bus has taken it."""
        while True:
            try:
                for uid, pod in self.pods.items():
                    await self.bus.put(POD_DESIRED, pod, uid)
                return await self.mark()
            except BusUnavailable:
                await asyncio.sleep(0.1)


def phase(desired: Desired, uid: str) -> str:
    report = desired.reports.get(uid)
    return report.status.phase if report is not None else ""


def running(engine: ModelRuntime, uid: str) -> list[str]:
    return [c.config.name for c in engine.containers.values() if c.config.uid == uid and c.is_running]


def is_running(desired: Desired, uid: str) -> bool:
    return phase(desired, uid) == "Running"


@dataclass
class Worker:
    service: Service
    tasks: GuardedTasks
    bus: Bus
    locks: set[int]
    """Its descriptors of the owners' lock file."""

    async def die(self) -> None:
        """As by kill -9, as far as that goes in one process: nothing is finished, nothing is told; its locks go with
        the descriptor."""
        await self.tasks.cancel()
        await self.bus._client.close()
        for fd in self.locks:
            os.close(fd)

    async def stop(self) -> None:
        await self.service.stop()
        await self.tasks.cancel()
        await self.bus.drain()


async def start_worker(
    server: NatsServer,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    number: int = 0,
    workers: int = 2,
    url: str = "",
    max_pods: int = 110,
    joined: bool = False,
) -> Worker:
    """`url`: of a second source of pods."""
    monkeypatch.setenv("PODBUS_TEST_RUNTIME", "tests.component.podworker.worker_on_model:the_engine")
    (data / "instance").write_text("test")
    bus = await connect(server.credentials("podworker"), node="n1", service="podworker", name=f"podworker-{number}")
    settings = Settings(data=data, manifests=data / "manifests", node_name="n1", workers=workers)
    settings = replace(settings, config=replace(settings.config, static_pod_url=url, max_pods=max_pods))
    settings = replace(settings, kubeconfig=data / "kubeconfig" if joined else None)
    os.makedirs(settings.paths.run, exist_ok=True)
    before = _open_files(settings.paths.owners_lock)
    service = await build(Context(settings, bus, SystemClock(), f"podworker-{number}"))
    tasks = GuardedTasks()
    await service.recover()
    await service.subscribe()
    tasks.start(service.tasks)
    return Worker(service, tasks, bus, _open_files(settings.paths.owners_lock) - before)


def _open_files(path: Path) -> set[int]:
    """This process's descriptors of the file."""
    return {int(link.name) for link in Path("/proc/self/fd").iterdir() if _target(link) == path.resolve()}


def _target(link: Path) -> Path | None:
    try:
        return link.readlink()
    except FileNotFoundError:  # the listing's own
        return None
