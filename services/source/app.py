"""Composition root of source."""

from __future__ import annotations

import uuid

from services.source.adapters.manifest_directory import ManifestDirectory
from services.source.adapters.source_store import SqliteSourceStore
from services.source.handlers.file_source import SOURCE, FileSource
from services.source.handlers.publish import Publisher
from services.source.handlers.queries import Queries
from shared.contracts.registry import RELOAD, SOURCES
from shared.runtime.event_ring import EventRing
from shared.runtime.restart_event import tell_restart
from shared.runtime.service import Context, Service
from shared.runtime.tasks import Forever


async def build(context: Context) -> Service:
    """Raises DatabaseUnusable when source.db isn't of this version."""
    settings, bus, clock = context.settings, context.bus, context.clock
    store = SqliteSourceStore(settings.data)
    events = EventRing(bus, clock, context.process)
    tell_restart(context, events.tell)
    publisher = Publisher(bus)
    files: list[FileSource] = []
    if settings.manifests is not None:
        files.append(
            FileSource(
                ManifestDirectory(settings.manifests),
                store,
                publisher,
                events,
                clock,
                node=settings.node_name,
                epoch=uuid.uuid4().hex[:12],
                period=settings.config.file_check_seconds,
                strict=settings.strict,
            )
        )
    queries = Queries(files, publisher)

    async def recover() -> None:
        for source in files:
            source.recover()

    async def subscribe() -> None:
        await bus.ensure_buckets()
        await bus.serve(SOURCES, queries.sources)
        await bus.serve(RELOAD, queries.reload)

    async def ready() -> None:
        if files:
            await publisher.published(SOURCE)

    async def stop() -> None:
        store.close()

    tasks: dict[str, Forever] = {"publish": publisher.run, "forget": publisher.forget, "events": events.run}
    for source in files:
        tasks["files"] = source.run
    return Service(recover=recover, subscribe=subscribe, ready=ready, stop=stop, tasks=tasks)
