"""What a pod asks of the node as the node is now: its labels and taints are the API server's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from services.podworker.core.admission import Demand, NodeTraits
from services.podworker.core.demand import demand_of
from services.podworker.core.model import Rejection
from shared.kube.pod import Pod

if TYPE_CHECKING:
    from services.podworker.handlers.pod_context import PodContext

DOUBT_SECONDS = 15.0
"""What is known of the Node may be older than the label that a scheduler went by: status looks at it every 10 s."""


class NodeView(Protocol):
    """The Node as its API server has it."""

    async def seen(self, own: NodeTraits) -> NodeTraits | None:
        """Its labels and taints in the traits `own`; just these without an API server. None: it isn't known now."""
        ...


class LocalNode:
    """NodeView without an API server."""

    async def seen(self, own: NodeTraits) -> NodeTraits | None:
        return own


class Placing:
    """Belongs to a pod's task."""

    def __init__(self, context: PodContext) -> None:
        self._context = context
        self._doubted_since: float | None = None

    async def demand(self, pod: Pod, uid: str, source: str) -> Demand | None:
        """None: a pod that was put here doesn't fit to what is known of the node, but that may be old: ask again."""
        own = self._context.limits.traits
        seen = await self._context.node.seen(own)
        demand = demand_of(pod, seen or own)
        if source == "api" and (demand.is_misplaced or demand.is_untolerated) and self._is_in_doubt(seen):
            return None
        if (desired := self._context.desired.get(uid)) is not None and desired.refused:
            return replace(demand, refused=Rejection(reason="NotSupported", message=desired.refused))
        return demand

    def _is_in_doubt(self, seen: NodeTraits | None) -> bool:
        now = self._context.executor.clock.boot_seconds()
        if self._doubted_since is None:
            self._doubted_since = now
        return seen is None or now < self._doubted_since + DOUBT_SECONDS
