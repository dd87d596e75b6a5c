"""Composition root of stats."""

from __future__ import annotations

import logging
import random
from pathlib import Path

from services.stats.adapters.cgroup import CgroupTree
from services.stats.adapters.directories import DirectoryWalker
from services.stats.adapters.filesystem import StatvfsFilesystems
from services.stats.adapters.machine import SystemMachine
from services.stats.adapters.procfs import Procfs
from services.stats.handlers.collect import Collector
from services.stats.handlers.disk import Disk
from services.stats.handlers.kills import Kills
from services.stats.handlers.queries import Queries
from services.stats.handlers.watching import Watching
from shared.bus import BucketWatch
from shared.contracts.registry import PAGE, STATUS, SUMMARY
from shared.kube.allocatable import allocatable_bytes
from shared.runtime.event_ring import EventRing
from shared.runtime.file_limit import raise_file_limit
from shared.runtime.kernel_log import KernelLog
from shared.runtime.machine import look_at_machine
from shared.runtime.restart_event import node_object, tell_restart
from shared.runtime.service import Context, Service
from shared.streams.server import StreamServer

log = logging.getLogger("podbus.stats")


async def build(context: Context) -> Service:
    """Raises OSError when /proc or the cgroup file system can't be read."""
    settings, bus = context.settings, context.bus
    config = settings.config
    raise_file_limit()
    tree = CgroupTree(Path("/sys/fs/cgroup"))
    processes, filesystems = Procfs(), StatvfsFilesystems()
    disk = Disk(DirectoryWalker(settings.data), processes, filesystems, context.clock)
    collector = Collector(
        node_name=settings.node_name,
        root_dir=str(settings.data),
        cgroups=tree,
        processes=processes,
        filesystems=filesystems,
        clock=context.clock,
        disk=disk,
        machine=SystemMachine(settings.data),
        sandbox_image=settings.sandbox_image,
        jitter=random.random,
    )
    memory = look_at_machine(settings.node_ip).memory_bytes
    events = EventRing(bus, context.clock, context.process)
    kernel_log = KernelLog()
    if kernel_log.trouble:
        log.info("kills for memory are counted without the kernel's log error=%s", kernel_log.trouble)
    kills = Kills(
        kernel_log, lambda message: events.tell("Warning", "SystemOOM", message, node_object(settings.node_name))
    )
    watching = Watching(
        collector,
        kills,
        cgroup_root=config.cgroup_root,
        allocatable_memory=allocatable_bytes(
            memory,
            "memory",
            "memory.available",
            config.eviction_hard,
            config.system_reserved,
            config.kube_reserved,
        ),
    )
    watch = BucketWatch(bus, STATUS, watching.on_list, watching.on_change)
    streams = StreamServer(settings.paths.run / "stats.sock")
    queries = Queries(collector, streams)
    tell_restart(context, events.tell)

    async def recover() -> None:
        collector.tick()
        await streams.start()

    async def subscribe() -> None:
        await bus.ensure_buckets()
        await bus.serve(SUMMARY, queries.summary)
        await bus.serve(PAGE, queries.page)

    async def ready() -> None:
        await watch.listed.wait()

    async def stop() -> None:
        await streams.stop()
        collector.close()
        tree.close()
        kernel_log.close()

    return Service(
        recover=recover,
        subscribe=subscribe,
        ready=ready,
        stop=stop,
        tasks={"watch": watch.run, "sample": watching.run, "disk": disk.run, "events": events.run},
    )
