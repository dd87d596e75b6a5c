"""The node's conditions, what is remembered of them, and the events of their flips."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from services.status.core.model import (
    DISK_PRESSURE,
    MEMORY_PRESSURE,
    PID_PRESSURE,
    PRESSURES,
    READY,
    ConditionMemory,
    NodeEvent,
    NodeMemory,
)
from services.status.core.remote_node import RemoteNode
from shared.kube.times import rfc3339

# Per condition and whether it is so: reason, message, reason of the event.
_TEXTS: dict[tuple[str, bool], tuple[str, str, str]] = {
    (MEMORY_PRESSURE, True): (
        "KubeletHasInsufficientMemory",
        "kubelet has insufficient memory available",
        "NodeHasInsufficientMemory",
    ),
    (MEMORY_PRESSURE, False): (
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
        "NodeHasSufficientMemory",
    ),
    (DISK_PRESSURE, True): ("KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"),
    (DISK_PRESSURE, False): ("KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"),
    (PID_PRESSURE, True): (
        "KubeletHasInsufficientPID",
        "kubelet has insufficient PID available",
        "NodeHasInsufficientPID",
    ),
    (PID_PRESSURE, False): (
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
        "NodeHasSufficientPID",
    ),
    (READY, True): ("KubeletReady", "kubelet is posting ready status", "NodeReady"),
    (READY, False): ("KubeletNotReady", "", "NodeNotReady"),
}


class NodeCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """v1.NodeCondition, in Kubernetes' order of keys."""

    type: str
    status: Literal["True", "False"]
    last_heartbeat_time: str
    last_transition_time: str
    reason: str
    message: str


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    conditions: list[NodeCondition]
    memory: NodeMemory
    """To be kept for the next time."""
    events: list[NodeEvent]


def judge(node: str, memory: NodeMemory, pressures: Collection[str], problems: Sequence[str], now: float) -> Judgement:
    """`pressures`: the condition types that are so. `problems`: why the node isn't ready; none = it is.

    kubelet 1.36: lastTransitionTime moves only when the status flips. A flip is an event; the first pressure
    condition counts as one (from Unknown), the first Ready doesn't.
    """
    conditions: list[NodeCondition] = []
    remembered: dict[str, ConditionMemory] = {}
    events: list[NodeEvent] = []
    for kind in (*PRESSURES, READY):
        so = not problems if kind == READY else kind in pressures
        reason, message, told = _TEXTS[kind, so]
        before = memory.conditions.get(kind)
        status: Literal["True", "False"] = "True" if so else "False"
        flipped = before is None or before.status != status
        since = now if before is None or flipped else before.since
        if flipped and not (kind == READY and before is None):
            events.append(NodeEvent(type="Normal", reason=told, message=f"Node {node} status is now: {told}"))
        remembered[kind] = ConditionMemory(status=status, since=since)
        conditions.append(
            NodeCondition(
                type=kind,
                status=status,
                last_heartbeat_time=rfc3339(now),
                last_transition_time=rfc3339(since),
                reason=reason,
                message=message or _aggregate(problems),
            )
        )
    kept = NodeMemory(created_at=memory.created_at, boot_id=memory.boot_id, conditions=remembered)
    return Judgement(conditions=conditions, memory=kept, events=events)


def reboot_event(node: str, memory: NodeMemory, boot_id: str) -> NodeEvent | None:
    """kubelet 1.36: a boot id other than the remembered one is told."""
    if not memory.boot_id or not boot_id or memory.boot_id == boot_id:
        return None
    message = f"Node {node} has been rebooted, boot id: {boot_id}"
    return NodeEvent(type="Warning", reason="Rebooted", message=message)


def schedulable_event(node: str, before: RemoteNode | None, after: RemoteNode) -> NodeEvent | None:
    """kubelet 1.36: cordoned and uncordoned is told; what was so at the start isn't."""
    if before is None or before.unschedulable == after.unschedulable:
        return None
    reason = "NodeNotSchedulable" if after.unschedulable else "NodeSchedulable"
    return NodeEvent(type="Normal", reason=reason, message=f"Node {node} status is now: {reason}")


def _aggregate(problems: Sequence[str]) -> str:
    """As apimachinery's Aggregate prints errors: one as it is, several in brackets."""
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
