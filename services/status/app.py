"""Composition root of status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.status.adapters.event_store import SqliteEventStore
from services.status.adapters.node_probe import MachineProbe
from services.status.core.model import NodeSettings, Observation
from services.status.handlers.events import Events
from services.status.handlers.node_status import NodeStatus
from services.status.handlers.own_events import OwnEvents
from services.status.joined import join
from shared.bus import BucketWatch
from shared.contracts.registry import EVENTS_HAND_OVER, EVENTS_QUERY, PODS_SEEN, STATUS
from shared.kube.allocatable import reservation_faults
from shared.runtime.restart_event import node_object, tell_restart
from shared.runtime.service import Context, Service, package_version
from shared.runtime.settings import Settings
from shared.runtime.tasks import Forever

if TYPE_CHECKING:
    from shared.apiserver.client import ApiClient


async def build(context: Context) -> Service:
    """Raises DatabaseUnusable when status.db isn't of this version, ValueError when more is reserved than there is."""
    settings, bus, clock = context.settings, context.bus, context.clock
    store = SqliteEventStore(settings.data)
    own_events = OwnEvents(clock, context.process)
    events = Events(store, clock)
    probe = MachineProbe(settings.data, settings.node_ip)
    _check_reservations(settings, probe.observe(""))
    node = NodeStatus(
        bus,
        clock,
        store,
        probe,
        own_events,
        _node_settings(settings),
        settings.config.node_status_seconds,
    )
    tasks: dict[str, Forever] = {"node": node.run, "prune": events.prune}
    server = _api_server(settings)
    joined = None if server is None else join(context, server, node, events)
    if joined is not None:
        tasks |= joined.tasks

    def on_list(entries: Mapping[str, bytes]) -> None:
        node.on_list(entries)
        if joined is not None:
            joined.pods.on_status_list(entries)

    def on_change(key: str, value: bytes | None) -> None:
        node.on_change(key, value)
        if joined is not None:
            joined.pods.on_status_change(key, value)

    watch = BucketWatch(bus, STATUS, on_list, on_change)

    def reconnected() -> None:
        """The bus tells of its own end only so."""
        message = "The bus was lost and is back: nats-server was restarted, or the connection broke"
        own_events.tell("Warning", "BusReconnected", message, node_object(settings.node_name))

    bus.on_reconnect(reconnected)

    async def recover() -> None:
        node.recover()
        if context.restart_reason:
            tell_restart(context, own_events.tell)
        else:
            own_events.tell("Normal", "Starting", "Starting podbus.", node_object(settings.node_name))

    async def subscribe() -> None:
        await bus.ensure_buckets()
        await bus.serve(EVENTS_HAND_OVER, events.hand_over)
        await bus.serve(EVENTS_QUERY, events.query)
        if joined is not None:
            seen = joined.seen
            await bus.on_hint(PODS_SEEN, lambda _, told: seen(told.versions))

    async def ready() -> None:
        await watch.listed.wait()
        await node.published.wait()

    async def stop() -> None:
        store.close()
        if server is not None:
            server.close()

    return Service(
        recover=recover,
        subscribe=subscribe,
        ready=ready,
        stop=stop,
        tasks={"watch": watch.run, **tasks},
        databases=(store.file,),
    )


def _api_server(settings: Settings) -> ApiClient | None:
    """None = this node has joined none."""
    if settings.kubeconfig is None:
        return None
    from shared.apiserver.client import ApiClient  # with what it needs only where there is an API server

    return ApiClient(settings.kubeconfig, f"podbus/{package_version()}")


def _check_reservations(settings: Settings, seen: Observation) -> None:
    config = settings.config
    capacity = {"cpu": seen.cores * 1000}
    if seen.memory_total is not None:
        capacity["memory"] = seen.memory_total
    if seen.nodefs is not None:
        capacity["ephemeral-storage"] = seen.nodefs.capacity
    reserved = {"systemReserved": config.system_reserved, "kubeReserved": config.kube_reserved}
    if faults := reservation_faults(capacity, config.eviction_hard, reserved):
        raise ValueError("; ".join(faults))


def _node_settings(settings: Settings) -> NodeSettings:
    config = settings.config
    return NodeSettings(
        name=settings.node_name,
        port=settings.port,
        version=package_version(),
        max_pods=config.max_pods,
        pods_per_core=config.pods_per_core,
        eviction_hard=config.eviction_hard,
        system_reserved=config.system_reserved,
        kube_reserved=config.kube_reserved,
        devices={name: len(units) for name, units in settings.devices.items()},
        max_images=config.node_max_images,
    )
