"""A service that was started again after its end tells so, as an event of the node."""

from __future__ import annotations

from typing import Literal, Protocol

from shared.contracts.events import InvolvedObject
from shared.runtime.service import Context

REASON = "ServiceRestarted"


class Tell(Protocol):
    """EventRing.tell, or what a service has in its place."""

    def __call__(
        self, kind: Literal["Normal", "Warning"], reason: str, message: str, involved: InvolvedObject, /
    ) -> None: ...


def node_object(name: str) -> InvolvedObject:
    """kubelet 1.36: in its own events the node's uid is its name."""
    return InvolvedObject(kind="Node", name=name, uid=name)


def tell_restart(context: Context, tell: Tell) -> None:
    """Nothing when this is the first process of its name since the node was started."""
    if context.restart_reason:
        message = f"{context.process} {context.restart_reason} and was started again"
        tell("Warning", REASON, message, node_object(context.settings.node_name))
