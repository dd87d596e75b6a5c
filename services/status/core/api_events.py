"""What has happened, as v1.Event objects at the API server. kubelet 1.36's recorder: client-go, tools/record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from services.status.core.aggregate import Tally
from shared.contracts.events import InvolvedObject
from shared.kube.times import rfc3339

COMPONENT = "kubelet"
"""Whoever looks for a node's events looks for these."""
DEFAULT_NAMESPACE = "default"


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """An event that the API server has."""

    namespace: str
    name: str
    count: int


def new_event(tally: Tally, node: str) -> dict[str, Any]:
    """The v1.Event of something that the API server hasn't been told yet."""
    event = tally.event
    involved = _involved(event.involved, node)
    namespace = involved.get("namespace", DEFAULT_NAMESPACE)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{involved['name']}.{_nanoseconds(tally.last_seen):x}", "namespace": namespace},
        "involvedObject": involved,
        "type": event.type,
        "reason": event.reason,
        "message": _message(tally),
        "source": {"component": COMPONENT, "host": node},
        "firstTimestamp": rfc3339(tally.first_seen),
        "lastTimestamp": rfc3339(tally.last_seen),
        "count": tally.count,
        "reportingComponent": COMPONENT,
        "reportingInstance": node,
    }


def again(known: Counted, more: Tally) -> Mapping[str, Any]:
    """The patch for one that it has."""
    return {
        "count": known.count + more.count,
        "lastTimestamp": rfc3339(more.last_seen),
        "message": _message(more),
    }


def _message(tally: Tally) -> str:
    event = tally.event
    where = f"{event.involved.uid}: " if event.involved.kind == "Source" and event.involved.uid else ""
    return where + event.message


def _involved(involved: InvolvedObject, node: str) -> dict[str, str]:
    """A node's UID is its name, as the kubelet has it; what a source says is said of the node."""
    if involved.kind != "Pod":
        return {"kind": "Node", "name": node, "uid": node, "apiVersion": "v1"}
    found = {
        "kind": "Pod",
        "namespace": involved.namespace,
        "name": involved.name,
        "uid": involved.uid,
        "apiVersion": "v1",
    }
    return {**found, "fieldPath": involved.field_path} if involved.field_path else found


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
