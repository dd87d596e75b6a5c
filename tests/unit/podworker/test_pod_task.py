"""A pod's task when its slot goes: the next owner finds what the last look has done."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec

from cli.db import db_upgrade
from services.podworker.adapters.network_sockets import SocketNetwork
from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.core.admission import NodeLimits
from services.podworker.core.plan import SyncConfig
from services.podworker.handlers.desired_pods import DesiredPods
from services.podworker.handlers.execute import Executor
from services.podworker.handlers.hooks import HookRunner
from services.podworker.handlers.permits import Permits
from services.podworker.handlers.pod_context import PodContext
from services.podworker.handlers.pod_record import Recorder
from services.podworker.handlers.pod_task import PodTask
from services.podworker.handlers.probes import Prober
from services.podworker.handlers.reports import Reports
from shared.contracts.pods import PodDesired
from shared.contracts.registry import POD_DESIRED
from shared.kube.ids import SLOTS
from shared.runtime.clock import SystemClock
from tests.support.builders import UID, a_container, a_node, a_pod
from tests.support.model_runtime import ModelRuntime
from tests.support.no_volumes import no_volumes


class Slow(ModelRuntime):
    """A start takes until the test lets it go."""

    def __init__(self) -> None:
        super().__init__(time.time)
        self.starting = asyncio.Event()
        self.go_on = asyncio.Event()

    async def start_container(self, container_id: str) -> None:
        self.starting.set()
        await self.go_on.wait()
        await super().start_container(container_id)


class NoReports:
    def publish(self, *arguments: object, **options: object) -> None:
        return

    publish_later = publish


def a_task(engine: ModelRuntime, store: SqlitePodStore) -> PodTask:
    desired = DesiredPods(["file"], lambda uid: None)
    body = msgspec.json.encode(a_pod(a_container()))
    pod = PodDesired(
        v=1,
        node="n1",
        ts=1.0,
        uid=UID,
        namespace="default",
        name="p-node1",
        source="file",
        gen=1,
        hash="h",
        seen=1.0,
        body=msgspec.Raw(body),
    )
    desired.on_list({POD_DESIRED.key(UID): msgspec.json.encode(pod)})
    clock = SystemClock()
    context = PodContext(
        desired=desired,
        executor=Executor(engine, engine, Permits(1), Permits(1), a_node(), SyncConfig(), clock, volumes=no_volumes()),
        hooks=HookRunner(engine, SocketNetwork()),
        prober=Prober(engine, SocketNetwork(), clock, "192.0.2.1", Random(1)),
        recorder=Recorder(store, clock, "podworker-0"),
        reports=cast(Reports, NoReports()),
        limits=NodeLimits(pods=110, cpu_milli=2000, memory_bytes=1 << 30),
        node_ip="192.0.2.1",
        sync_seconds=60.0,
        rng=Random(1),
        may_start=lambda task: True,
        ended=lambda task: None,
        handled=lambda uid, gen, begin: None,
    )
    return PodTask.of(context, UID, "default", "p-node1", None)


def row(store: SqlitePodStore) -> Any:
    (found,) = store.load_slots(range(SLOTS))
    return found.memory


async def test_what_a_look_did_after_the_slot_was_asked_back_is_stored(tmp_path: Path) -> None:
    db_upgrade(tmp_path)
    engine, store = Slow(), SqlitePodStore(tmp_path)
    task = a_task(engine, store)
    running = asyncio.create_task(task.run())
    await asyncio.wait_for(engine.starting.wait(), 10)
    task.stop()
    engine.go_on.set()
    await asyncio.wait_for(running, 10)
    assert row(store).restarts == {"c": 0}
    assert [event.reason for event in store.pending_events(10)] == ["MissingClusterDNS", "Pulled", "Created", "Started"]


async def test_so_is_what_was_done_before_the_look_was_cut(tmp_path: Path) -> None:
    """The container was created; its start is not known."""
    db_upgrade(tmp_path)
    engine, store = Slow(), SqlitePodStore(tmp_path)
    task = a_task(engine, store)
    running = asyncio.create_task(task.run())
    await asyncio.wait_for(engine.starting.wait(), 10)
    running.cancel()
    await asyncio.wait([running], timeout=10)
    assert row(store).restarts == {}
    assert [event.reason for event in store.pending_events(10)] == ["MissingClusterDNS", "Pulled", "Created"]
