"""Composition root of source."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from random import Random

from services.source.adapters.manifest_directory import ManifestDirectory
from services.source.adapters.source_store import SqliteSourceStore
from services.source.handlers.api_source import ApiSource
from services.source.handlers.cluster_configs import ClusterConfigs
from services.source.handlers.cluster_desk import ClusterDesk
from services.source.handlers.configs import ConfigDesk
from services.source.handlers.feed import FeedContext
from services.source.handlers.file_source import FileSource
from services.source.handlers.neighbours import Neighbours
from services.source.handlers.publish import Publisher
from services.source.handlers.queries import Queries, Source
from services.source.handlers.url_source import UrlSource
from shared.apiserver.server import ApiServer
from shared.contracts.pods import PodsSeen
from shared.contracts.registry import PODS_SEEN, RELOAD, SOURCES
from shared.runtime.event_ring import EventRing
from shared.runtime.restart_event import tell_restart
from shared.runtime.service import Context, Service, package_version
from shared.runtime.settings import Settings, configured_sources
from shared.runtime.tasks import Forever


@dataclass(frozen=True)
class _Joined:
    """What a node that has joined an API server has besides."""

    server: ApiServer
    configs: ClusterConfigs
    rng: Random


async def build(context: Context) -> Service:
    """Raises DatabaseUnusable when source.db isn't of this version."""
    settings, bus, clock = context.settings, context.bus, context.clock
    store = SqliteSourceStore(settings.data)
    events = EventRing(bus, clock, context.process)
    tell_restart(context, events.tell)
    publisher = Publisher(bus, configured_sources(settings))
    joined = _joined(settings)
    configs = ConfigDesk(
        bus,
        [name for name in configured_sources(settings) if name != "api"],
        joined.configs if joined is not None else None,
    )
    sharing = FeedContext(
        store=store,
        publisher=publisher,
        events=events,
        clock=clock,
        neighbours=Neighbours(),
        configs=configs,
        node=settings.node_name,
        epoch=uuid.uuid4().hex[:12],
        strict=settings.strict,
    )

    async def seen(versions: dict[str, str]) -> None:
        await bus.hint(PODS_SEEN, PodsSeen(versions=versions))

    sources = _sources(settings, sharing)
    cluster = ClusterDesk(joined.server, configs, clock, joined.rng) if joined is not None else None
    if joined is not None:
        sources.append(ApiSource(joined.server, str(settings.kubeconfig), sharing, joined.rng, seen))
    queries = Queries(sources, publisher)

    async def recover() -> None:
        for source in sources:
            source.feed.recover()

    async def subscribe() -> None:
        await bus.ensure_buckets()
        await bus.serve(SOURCES, queries.sources)
        await bus.serve(RELOAD, queries.reload)
        await configs.serve()
        if cluster is not None:
            await cluster.serve(bus)

    async def ready() -> None:
        for source in sources:
            await source.feed.published()

    async def stop() -> None:
        store.close()

    tasks: dict[str, Forever] = {"publish": publisher.run, "forget": publisher.forget, "events": events.run}
    tasks["configs"] = configs.run
    tasks |= {source.name: source.run for source in sources}
    if joined is not None and cluster is not None:
        tasks |= {"cluster configs": joined.configs.run, "services": cluster.run}
    return Service(recover=recover, subscribe=subscribe, ready=ready, stop=stop, tasks=tasks, databases=(store.file,))


def _sources(settings: Settings, sharing: FeedContext) -> list[Source]:
    config = settings.config
    sources: list[Source] = []
    if settings.manifests is not None:
        directory = ManifestDirectory(settings.manifests)
        sources.append(FileSource(directory, sharing, period=config.file_check_seconds))
    if config.static_pod_url:
        from services.source.adapters.manifest_url import ManifestUrl  # http and ssl, only when there is a URL

        page = ManifestUrl(config.static_pod_url, config.static_pod_url_header)
        sources.append(UrlSource(page, sharing, period=config.http_check_seconds))
    return sources


def _joined(settings: Settings) -> _Joined | None:
    if settings.kubeconfig is None:
        return None
    from shared.apiserver.client import ApiClient  # h11 and ssl, only on a joined node

    rng = Random()  # noqa: S311  spreads tries over time
    server = ApiClient(settings.kubeconfig, f"podbus-source/{package_version()}")
    return _Joined(server, ClusterConfigs(server, rng), rng)
