"""What status does besides when the node has joined a cluster: all writing to the API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from services.status.core.registration import Joining
from services.status.handlers.api_events import ApiEvents
from services.status.handlers.events import Events
from services.status.handlers.known_pods import KnownPods
from services.status.handlers.lease import NodeLease
from services.status.handlers.mirror_pods import MirrorPods
from services.status.handlers.node_registration import NodeRegistration
from services.status.handlers.node_status import NodeStatus
from services.status.handlers.pod_statuses import PodStatuses
from shared.apiserver.server import Requests
from shared.bus import BucketWatch
from shared.contracts.registry import PODS
from shared.runtime.service import Context
from shared.runtime.settings import Settings
from shared.runtime.tasks import Forever


@dataclass(frozen=True)
class Joined:
    pods: KnownPods
    """To be fed with the watch on podbus_status."""
    seen: Callable[[Mapping[str, str]], None]
    """To be told of the pods' versions at the API server."""
    tasks: dict[str, Forever]


def join(context: Context, server: Requests, node: NodeStatus, events: Events) -> Joined:
    settings, clock = context.settings, context.clock
    rng = Random()  # noqa: S311 - jitter
    name = settings.node_name
    registration = NodeRegistration(server, clock, _joining(settings), node.note_remote, rng)
    lease = NodeLease(server, clock, name, settings.config.node_lease_duration, lambda: registration.uid, rng)
    pods = KnownPods()
    statuses = PodStatuses(server, pods, rng)
    mirrors = MirrorPods(server, pods, name, lambda: registration.uid, rng)
    told = ApiEvents(server, name, rng)
    node.report_to(registration.tell, told.tell)
    events.report_to(told.tell)
    watch = BucketWatch(context.bus, PODS, pods.on_pods_list, pods.on_pods_change)
    return Joined(
        pods,
        statuses.seen,
        {
            "registration": registration.run,
            "lease": lease.run,
            "wanted pods": watch.run,
            "pod statuses": statuses.run,
            "mirror pods": mirrors.run,
            "events": told.run,
        },
    )


def _joining(settings: Settings) -> Joining:
    config = settings.config
    return Joining(
        register=config.register_node,
        labels=settings.node_labels,
        taints=config.register_with_taints,
        provider_id=config.provider_id,
        report_seconds=config.node_report_seconds,
    )
