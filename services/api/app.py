"""The composition root: settings and bus -> view, endpoints, listeners."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from services.api.adapters.authn import TokenFile
from services.api.adapters.bus_queries import BusOwners
from services.api.adapters.disk import disk_trouble
from services.api.adapters.http_server import HttpListener
from services.api.adapters.policy_file import PolicyFile
from services.api.adapters.tls import ServingTls
from services.api.core.node_view import NodeView
from services.api.core.routing import Surface
from services.api.handlers.face import Face
from services.api.handlers.gate import NodeGate
from services.api.handlers.health import local_health
from services.api.handlers.node_gauges import node_gauges
from services.api.handlers.reviews import ApiServerReviews, KeepSeconds
from services.api.handlers.web import web_app
from services.api.ports import Reviewer
from shared.bus import BucketWatch
from shared.contracts.registry import METRICS, PODS, STATUS, WORKER_HEARTBEAT
from shared.contracts.worker import Heartbeat
from shared.runtime.config import config_document
from shared.runtime.event_ring import EventRing
from shared.runtime.file_limit import raise_file_limit
from shared.runtime.restart_event import tell_restart
from shared.runtime.service import Context, Service, package_version
from shared.runtime.settings import Settings
from shared.runtime.tasks import Forever

log = logging.getLogger("podbus.api")

_FILES_SECONDS = 10.0


async def build(context: Context) -> Service:
    """The service `api`."""
    raise_file_limit()
    settings, bus, clock = context.settings, context.bus, context.clock
    view = NodeView(started_at=clock.now())
    # the run directory: in a container the data directory itself needn't be mounted
    disk = partial(disk_trouble, settings.paths.run)
    config = settings.config
    face = Face(
        settings.node_name,
        package_version(),
        view,
        BusOwners(bus),
        clock,
        started_at=clock.now(),
        config=config_document(config),
        flags=_flags(settings),
        log_root=Path(settings.log_root).parent,
        idle_seconds=config.streaming_idle_seconds,
        surface=Surface(config.debugging_handlers, config.system_log_handler, config.debug_flags_handler),
        disk_trouble=disk,
        metrics=context.metrics,
    )
    node_gauges(context.metrics, settings.node_name, face.version, view, clock)
    watches = (
        BucketWatch(bus, PODS, view.list_pods, view.change_pods),
        BucketWatch(bus, STATUS, view.list_status, view.change_status),
    )
    events = EventRing(bus, clock, context.process)
    tell_restart(context, events.tell)
    tls = _serving_tls(settings)
    reviews = _api_server(settings) if settings.kubeconfig else None
    front, read_only = web_app(face, _gate(settings, reviews))
    https = HttpListener(front, config.address, settings.port, tls.context)
    others: dict[str, HttpListener] = {}
    # kubelet: that one of these ports is taken is told, and doesn't stop it
    if config.healthz_port:
        others["healthz"] = HttpListener(local_health, config.healthz_bind_address, config.healthz_port, retry=True)
    if config.read_only_port:
        others["read-only"] = HttpListener(read_only, config.address, config.read_only_port, retry=True)

    async def subscribe() -> None:
        def heard(_worker: str, beat: Heartbeat) -> None:
            view.worker_heard(beat.worker, clock.now())

        await bus.on_hint(WORKER_HEARTBEAT, heard)
        for hint in METRICS.values():
            await bus.on_hint(hint, lambda process, report: face.others.heard(process, report, clock.now()))

    async def serve() -> None:
        for watch in watches:
            await watch.listed.wait()  # an answer before the first list would say that there is no pod
        await https.run()

    async def stop() -> None:
        face.stopping.set()
        await asyncio.gather(*(listener.stop() for listener in (https, *others.values())))

    tasks: dict[str, Forever] = {
        "watch-pods": watches[0].run,
        "watch-status": watches[1].run,
        "https": serve,
        "files": lambda: _look_after(tls, view),
        "events": events.run,
    }
    tasks |= {name: listener.run for name, listener in others.items()}
    return Service(
        recover=lambda: _wait_for(tls),
        subscribe=subscribe,
        tasks=tasks,
        ready=_until_set(https.listening),
        stop=stop,
        metadata={"port": str(settings.port)},
        facts=_facts,
    )


def _flags(settings: Settings) -> Mapping[str, str]:
    """What /flagz tells."""
    return {
        "data": str(settings.data),
        "hostname-override": settings.node_name,
        "manifests": str(settings.manifests or ""),
        "port": str(settings.port),
        "workers": str(settings.workers),
    }


def _gate(settings: Settings, reviews: Reviewer | None) -> NodeGate:
    config, pki = settings.config, settings.paths.pki
    always = config.authorization_mode == "AlwaysAllow"
    if always:
        log.warning("authorization.mode is AlwaysAllow: %s", "anybody" if config.anonymous else "any known user")
    return NodeGate(
        TokenFile(pki / "tokens.csv"),
        PolicyFile(settings.policy or pki / "policy.yaml"),
        token_reviews=reviews if config.token_webhook else None,
        access_reviews=reviews,
        anonymous=config.anonymous,
        always_allow=always,
    )


def _api_server(settings: Settings) -> Reviewer:
    from services.api.adapters.api_server import ApiServerClient  # h11 and PyYAML only for a joined node

    assert settings.kubeconfig is not None
    client = ApiServerClient(settings.kubeconfig, package_version())
    try:
        client.check()
    except (OSError, ValueError) as error:
        log.error("the kubeconfig can't be used path=%s error=%s", settings.kubeconfig, error)
    config = settings.config
    return ApiServerReviews(
        client,
        settings.node_name,
        secrets.token_bytes(32),
        time.monotonic,
        keep=KeepSeconds(config.token_webhook_seconds, config.authorized_seconds, config.unauthorized_seconds),
        chance=random.Random(),  # noqa: S311  spreads retries
    )


def _serving_tls(settings: Settings) -> ServingTls:
    pki, config = settings.paths.pki, settings.config
    return ServingTls(
        Path(config.tls_cert_file or pki / "serving.crt"),
        Path(config.tls_private_key_file or pki / "serving.key"),
        Path(config.client_ca_file or pki / "ca.crt"),
        min_version=config.tls_min_version,
        cipher_suites=config.tls_cipher_suites,
    )


async def _wait_for(tls: ServingTls) -> None:
    """Until its files are there: the set-up may come later than we do. Raises ValueError when they don't fit."""
    told: list[Path] = []
    while missing := tls.missing():
        if missing != told:
            told = missing
            log.warning("phase=waiting for %s", ", ".join(map(str, missing)))
        await asyncio.sleep(0.5)
    tls.context()


async def _look_after(tls: ServingTls, view: NodeView) -> None:
    """Changed certificates, and messages that could not be read: told once each."""
    told: set[str] = set()
    while True:
        await asyncio.sleep(_FILES_SECONDS)
        tls.reload()
        for key in view.problems.keys() - told:
            told.add(key)
            log.error("message can't be read key=%s error=%s", key, view.problems[key])


def _until_set(event: asyncio.Event) -> Forever:
    async def wait() -> None:
        await event.wait()

    return wait


def _facts() -> Mapping[str, object]:
    return {"pid": os.getpid()}
