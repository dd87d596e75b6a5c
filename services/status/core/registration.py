"""How the node becomes known to the API server: the first Node object, and what is corrected of one that is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from services.status.core.node import Node
from services.status.core.remote_node import RemoteNode

ATTACH_DETACH = "volumes.kubernetes.io/controller-managed-attach-detach"
FIRST_DELAY, LONGEST_DELAY = 0.1, 7.0
"""kubelet 1.36: seconds between tries to register."""

_CORRECTED = (
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
)
"""kubelet 1.36: the labels that an existing Node's are made to agree with; any other is its administrator's."""


class Joining(msgspec.Struct, frozen=True, kw_only=True):
    """What is configured of the Node at the API server."""

    register: bool = True
    """False: the Node is made by somebody else, and only its status is told."""
    labels: Mapping[str, str] = {}
    """Further ones; those of the machine don't win against them."""
    taints: tuple[Mapping[str, str], ...] = ()
    """Of a Node that is made; not of one that is there."""
    provider_id: str = ""
    report_seconds: float = 300.0


def first_node(node: Node, joining: Joining) -> dict[str, Any]:
    """The body to create."""
    spec: dict[str, Any] = {}
    if joining.provider_id:
        spec["providerID"] = joining.provider_id
    if joining.taints:
        spec["taints"] = [dict(taint) for taint in joining.taints]
    body = msgspec.to_builtins(node)
    metadata = {"name": node.metadata.name, "labels": _labels(node, joining), "annotations": {ATTACH_DETACH: "true"}}
    return {**body, "metadata": metadata, "spec": spec}


def correction(remote: RemoteNode, node: Node, joining: Joining) -> dict[str, Any] | None:
    """A patch of a Node that was there before; None = it's as it should be.

    kubelet 1.36: one annotation and the labels of the machine; a configured empty one is removed. Taints, other labels
    and the spec are left alone.
    """
    wanted = _labels(node, joining)
    labels: dict[str, str | None] = {}
    for name in _CORRECTED:
        if name in wanted:
            value = wanted[name] or None
            if remote.metadata.labels.get(name) != value:
                labels[name] = value
    annotations = {} if remote.metadata.annotations.get(ATTACH_DETACH) == "true" else {ATTACH_DETACH: "true"}
    metadata = {name: found for name, found in (("labels", labels), ("annotations", annotations)) if found}
    return {"metadata": metadata} if metadata else None


def _labels(node: Node, joining: Joining) -> dict[str, str]:
    return {**node.metadata.labels, **joining.labels}
