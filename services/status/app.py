"""Composition root of status."""

from __future__ import annotations

from services.status.adapters.event_store import SqliteEventStore
from services.status.adapters.node_probe import MachineProbe
from services.status.core.model import NodeSettings
from services.status.handlers.events import Events
from services.status.handlers.node_status import NodeStatus
from services.status.handlers.own_events import OwnEvents
from shared.bus import BucketWatch
from shared.contracts.registry import EVENTS_HAND_OVER, EVENTS_QUERY, STATUS
from shared.runtime.restart_event import node_object, tell_restart
from shared.runtime.service import Context, Service, package_version
from shared.runtime.settings import Settings


async def build(context: Context) -> Service:
    """Raises DatabaseUnusable when status.db isn't of this version."""
    settings, bus, clock = context.settings, context.bus, context.clock
    store = SqliteEventStore(settings.data)
    own_events = OwnEvents(clock, context.process)
    events = Events(store, clock)
    node = NodeStatus(
        bus,
        clock,
        store,
        MachineProbe(settings.data, settings.node_ip),
        own_events,
        _node_settings(settings),
        settings.config.node_status_seconds,
    )
    watch = BucketWatch(bus, STATUS, node.on_list, node.on_change)

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

    async def ready() -> None:
        await watch.listed.wait()
        await node.published.wait()

    async def stop() -> None:
        store.close()

    return Service(
        recover=recover,
        subscribe=subscribe,
        ready=ready,
        stop=stop,
        tasks={"watch": watch.run, "node": node.run, "prune": events.prune},
        databases=(store.file,),
    )


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
