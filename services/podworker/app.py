"""Composition root of podworker: settings -> adapters -> handlers -> Service."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol, cast

from services.podworker.adapters.bus_configs import BusConfigObjects
from services.podworker.adapters.bus_node import BusNode
from services.podworker.adapters.host_files import HostFiles
from services.podworker.adapters.host_paths import engines_root, own_root
from services.podworker.adapters.image_records import SqliteImageRecords
from services.podworker.adapters.network_sockets import SocketNetwork
from services.podworker.adapters.node_probe import gc_policy, node_facts, node_limits
from services.podworker.adapters.owner_locks import OwnerLocks
from services.podworker.adapters.pod_network import PodSockets
from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.adapters.volume_store import VolumeStore
from services.podworker.core.plan import SyncConfig
from services.podworker.handlers.collection import Collection
from services.podworker.handlers.desired_pods import DesiredPods
from services.podworker.handlers.event_outbox import EventOutbox
from services.podworker.handlers.executor import Executor
from services.podworker.handlers.hooks import HookRunner
from services.podworker.handlers.image_access import ImageAccess
from services.podworker.handlers.image_collection import ImageCollection
from services.podworker.handlers.measured import MeasuredCommands, MeasuredImages, MeasuredRuntime
from services.podworker.handlers.measures import Measures, worker_gauges
from services.podworker.handlers.node_duties import NodeDuties
from services.podworker.handlers.ownership import Ownership
from services.podworker.handlers.permits import Permits, share_of
from services.podworker.handlers.placing import LocalNode
from services.podworker.handlers.pod_context import PodContext
from services.podworker.handlers.pod_record import Recorder
from services.podworker.handlers.pods import Pods
from services.podworker.handlers.prober import Prober
from services.podworker.handlers.queries import Queries
from services.podworker.handlers.relist import Relist
from services.podworker.handlers.reports import Reports
from services.podworker.handlers.streams import Streams
from services.podworker.handlers.volumes import VolumeKeeper
from services.podworker.ports import (
    CommandRunner,
    ContainerRuntime,
    ContainerSessions,
    EngineInfo,
    ImageService,
    ImageStore,
    Leftovers,
    LogReader,
    RuntimeUnavailable,
)
from shared.bus import BucketWatch
from shared.contracts.events import InvolvedObject
from shared.contracts.registry import (
    CONFIGS_CHANGED,
    PODS,
    RUNNING_PODS,
    SLOT_RELEASED,
    STREAM,
    WORKER_HEARTBEAT,
)
from shared.contracts.worker import Heartbeat, SlotReleased
from shared.runtime.event_ring import EventRing
from shared.runtime.machine import look_at_machine
from shared.runtime.restart_event import tell_restart
from shared.runtime.service import Context, Service
from shared.runtime.settings import Settings, configured_sources
from shared.streams.server import StreamServer

log = logging.getLogger("podbus.podworker")

PERMITS_PER_CORE = 2
"""Starts and removals at a time on the node: the engine is bound by CPU, more only adds latency."""
HEARTBEAT_SECONDS = 2.0
GIVE_UP_SECONDS = 30.0
"""In a container: without an engine for this long the process ends, and its restart mounts the engine's new socket."""


class Engine(ContainerRuntime, ImageService, LogReader, CommandRunner, Protocol):
    """All that a runtime offers; `PODBUS_TEST_RUNTIME=module:factory` puts another one in, for the chaos test."""


@dataclass
class Outside:
    """The adapters of one process."""

    runtime: ContainerRuntime
    images: ImageService
    logs: LogReader
    sessions: ContainerSessions
    commands: CommandRunner
    leftovers: Leftovers | None = None
    image_store: ImageStore | None = None

    def close(self) -> None:
        for part in (
            self.runtime,
            self.images,
            self.logs,
            self.sessions,
            self.commands,
            self.leftovers,
            self.image_store,
        ):
            close = getattr(part, "close", None)
            if close is not None:
                close()


async def build(context: Context) -> Service:
    """Wait for the engine, then put everything together. Raises DatabaseUnusable, OSError."""
    settings, bus, clock = context.settings, context.bus, context.clock
    instance = settings.paths.instance_file.read_text().strip()
    is_contained = _is_mounted_socket(settings.docker_host)
    engine_host = engines_root if is_contained else own_root
    outside = _open_outside(settings, instance, engine_host)
    measures = Measures(context.metrics)
    runtime, images = MeasuredRuntime(outside.runtime, measures), MeasuredImages(outside.images, measures)
    commands = MeasuredCommands(outside.commands, measures)
    machine = look_at_machine(settings.node_ip)
    engine = await _first_answer(runtime)
    if settings.config.cgroup_driver not in ("", engine.cgroup_driver):
        raise ValueError(
            f"cgroupDriver: the configuration says {settings.config.cgroup_driver!r}, the engine uses"
            f" {engine.cgroup_driver!r}: make them equal, or leave it out to take the engine's"
        )
    store = SqlitePodStore(settings.data)
    desired = DesiredPods(configured_sources(settings), lambda uid: pods.desired_changed(uid))
    recorder = Recorder(store, clock, context.process)
    reports = Reports(bus, clock, lambda: ownership.index or 0)
    pods = Pods(desired, recorder, reports)
    locks = OwnerLocks(settings.paths.owners_lock)
    locks.self_test(workers=None if settings.workers != 1 else 1)

    async def announce(slot: int) -> None:
        await bus.hint(SLOT_RELEASED, SlotReleased(worker=ownership.index or 0), str(slot))

    def gained(slots: frozenset[int]) -> None:
        pods.gained(slots)
        duties.gained(slots)

    ownership = Ownership(locks, on_gained=gained, on_lost=pods.lost, announce=announce, monotonic=time.monotonic)
    permits, pulls = Permits(1), Permits(1)
    facts = node_facts(settings, instance, engine, machine, HostFiles(engine_host))
    volume_store = VolumeStore(settings.data, engine_host)
    configs, image_records = BusConfigObjects(bus), SqliteImageRecords(settings.data)
    executor = Executor(
        runtime,
        images,
        permits,
        pulls,
        facts,
        SyncConfig(crash_max=settings.config.max_restart_period_seconds),
        clock,
        volumes=VolumeKeeper(volume_store, configs, facts, clock, refresh_seconds=settings.config.sync_seconds),
        access=ImageAccess(images, configs, image_records, clock, settings.config.pull_verification),
        measures=measures,
    )
    network, rng = SocketNetwork(), Random()  # noqa: S311 - jitter
    pods.use(
        PodContext(
            desired=desired,
            executor=executor,
            hooks=HookRunner(commands, network),
            prober=Prober(commands, network, clock, machine.address, rng, measures),
            recorder=recorder,
            reports=reports,
            limits=node_limits(settings, machine, engine),
            node_ip=machine.address,
            sync_seconds=settings.config.sync_seconds,
            rng=rng,
            may_start=pods.may_start,
            ended=pods.ended,
            preempt=pods.preempt,
            node=BusNode(bus) if settings.kubeconfig is not None else LocalNode(),
            handled=_journal(),
            measures=measures,
        )
    )
    relist = Relist(
        runtime,
        clock,
        pods.listed,
        pods.runtime_changed,
        give_up_seconds=GIVE_UP_SECONDS if is_contained else None,
        measures=measures,
    )
    worker_gauges(context.metrics, context.process, lambda: len(ownership.owned), lambda: len(pods), relist)
    watch = BucketWatch(bus, PODS, desired.on_list, desired.on_change)
    streams = StreamServer(settings.paths.run / f"{context.process}.sock")
    queries = Queries(runtime, outside.logs, Streams(outside.sessions, PodSockets()), streams)
    node_events = EventRing(bus, clock, context.process)  # pods.db keeps those of pods only
    tell_restart(context, node_events.tell)
    sweeps = []
    if outside.leftovers is not None:
        sweeps.append(Collection(runtime, outside.leftovers, store, desired).sweep)
    if outside.image_store is not None:
        policy, node = gc_policy(settings.config), InvolvedObject(kind="Node", name=settings.node_name)
        sweeps.append(ImageCollection(outside.image_store, image_records, clock, policy, node_events, node).sweep)

    async def collect() -> None:
        for sweep in sweeps:
            await sweep()

    duties = NodeDuties(
        bus,
        clock,
        runtime,
        images,
        store,
        ownership,
        relist,
        desired,
        lambda: recorder.trouble,
        collect,
    )

    async def beat() -> None:
        total = PERMITS_PER_CORE * machine.cores
        while True:
            workers = len(ownership.members) or 1
            permits.resize(share_of(total, workers))
            pulls.resize(share_of(settings.config.max_parallel_pulls, workers))
            body = Heartbeat(worker=ownership.index or 0, at=clock.now(), slots=len(ownership.owned), pods=len(pods))
            await bus.hint(WORKER_HEARTBEAT, body, str(body.worker))
            await asyncio.sleep(HEARTBEAT_SECONDS if workers == 1 else 1.0)

    async def own() -> None:
        """After the first complete lists, never before: a worker that knows no pods must not hold their slots."""
        await relist.first.wait()
        ownership.start()
        owning.set()
        await ownership.run()
        await asyncio.Event().wait()  # left on purpose: the end is on its way

    owning = asyncio.Event()

    async def recover() -> None:
        await streams.start()

    async def subscribe() -> None:
        await bus.ensure_buckets()
        await bus.serve(RUNNING_PODS, queries.running)
        await bus.serve(STREAM, queries.stream)
        await bus.on_hint(SLOT_RELEASED, lambda slot, _: ownership.released(int(slot)))
        await bus.on_hint(CONFIGS_CHANGED, lambda _, changed: pods.configs_changed(changed.uids))

    async def ready() -> None:
        await watch.listed.wait()
        await owning.wait()

    async def stop() -> None:
        busy = await ownership.leave()
        try:
            await asyncio.wait_for(reports.flush(), 1)
        except TimeoutError:
            log.warning("some reports are left to the next owner")
        await streams.stop()
        store.close()
        image_records.close()
        outside.close()
        volume_store.close()
        if not busy:  # else the end of this process frees them, when nothing of it can act any more
            locks.close()

    return Service(
        recover=recover,
        subscribe=subscribe,
        ready=ready,
        stop=stop,
        tasks={
            "watch": watch.run,
            "engine events": relist.follow,
            "relist": relist.run,
            "ownership": own,
            "reports": reports.run,
            "events": EventOutbox(bus, store).run,
            "node events": node_events.run,
            "node": duties.run,
            "beat": beat,
        },
        metadata={"lock": locks.identity, "engine": engine.version},
        databases=(store.file, image_records.file),
        facts=lambda: {
            "worker": ownership.index,
            "pods": len(pods),
            "slots": len(ownership.owned),
            "trouble": recorder.trouble,
        },
    )


def _open_outside(settings: Settings, instance: str, engine_host: Callable[[], Path]) -> Outside:
    if hook := os.environ.get("PODBUS_TEST_RUNTIME"):
        module, _, factory = hook.partition(":")
        made = cast(Engine, getattr(importlib.import_module(module), factory)(settings, instance))
        return Outside(made, made, made, cast(ContainerSessions, made), made)
    # docker costs 10 MiB: only here, and only when it's used
    from services.podworker.adapters.cgroup_parent import PodCgroups
    from services.podworker.adapters.docker_exec import DockerCommands
    from services.podworker.adapters.docker_image_store import DockerImageStore
    from services.podworker.adapters.docker_images import DockerImages
    from services.podworker.adapters.docker_logs import DockerLogs
    from services.podworker.adapters.docker_runtime import DockerRuntime
    from services.podworker.adapters.docker_sessions import DockerSessions
    from services.podworker.adapters.leftovers import NodeLeftovers
    from services.podworker.adapters.pod_files import PodFiles

    files = PodFiles(
        settings.data, Path(settings.log_root), Path(settings.log_root).parent / "containers", HostFiles(engine_host)
    )
    cgroups = PodCgroups(cgroup_root=settings.config.cgroup_root)
    return Outside(
        DockerRuntime(instance, files, cgroups, settings.docker_host, settings.network),
        DockerImages(settings.paths.run, settings.docker_host),
        DockerLogs(settings.docker_host),
        DockerSessions(settings.docker_host),
        DockerCommands(files.secret_values, settings.docker_host),
        NodeLeftovers(settings.data, files, cgroups),
        DockerImageStore(engine_host, settings.docker_host),
    )


def _is_mounted_socket(docker_host: str) -> bool:
    return docker_host.startswith("unix://") and os.path.ismount(docker_host.removeprefix("unix://"))


async def _first_answer(runtime: ContainerRuntime) -> EngineInfo:
    told = False
    while True:
        try:
            return await runtime.info()
        except RuntimeUnavailable as error:
            if not told:
                log.warning("waiting for the engine error=%s", error)
                told = True
            await asyncio.sleep(1)


class _Handled(Protocol):
    def __call__(self, uid: str, gen: int, begin: bool, /) -> None: ...


def _journal() -> _Handled:
    """Nothing, or for the chaos test one line per begin and end of a pod's handling (PODBUS_TEST_JOURNAL)."""
    if not (path := os.environ.get("PODBUS_TEST_JOURNAL")):
        return lambda uid, gen, begin: None
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(uid: str, gen: int, begin: bool, /) -> None:
        os.write(fd, f"{time.monotonic_ns()} {os.getpid()} {'+' if begin else '-'} {uid} {gen}\n".encode())

    return write
