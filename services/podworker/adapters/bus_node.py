"""The Node over the bus: status keeps it as the API server has it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from services.podworker.core.admission import NodeTraits
from shared.bus import Bus, BusUnavailable, read
from shared.contracts.registry import NODE_REPORT
from shared.kube.scheduling import Taint


class _Metadata(msgspec.Struct, frozen=True):
    uid: str = ""
    labels: Mapping[str, str] = {}


class _Spec(msgspec.Struct, frozen=True):
    taints: tuple[Taint, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()


class BusNode:
    """NodeView (services.podworker.handlers.placing) of a node that has joined a cluster."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def seen(self, own: NodeTraits) -> NodeTraits | None:
        try:
            report = await read(self._bus, NODE_REPORT)
            node = msgspec.json.decode(report.body, type=_Node) if report is not None else _Node()
        except (BusUnavailable, msgspec.MsgspecError):
            return None
        if not node.metadata.uid:  # status hasn't seen it there yet
            return None
        return msgspec.structs.replace(own, labels=dict(node.metadata.labels), taints=node.spec.taints)
