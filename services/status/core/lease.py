"""The node's Lease: the sign of life that the node controller watches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.kube.times import rfc3339_nano

NAMESPACE = "kube-node-lease"
RENEW_FRACTION = 0.25
"""kubelet 1.36: of the lease's duration passes between two renewals."""
RENEW_JITTER = 0.04
"""kubelet 1.36: and so much of it more, by chance."""
QUICK_TRIES = 5
FIRST_DELAY, LONGEST_DELAY = 0.2, 7.0
"""kubelet 1.36: seconds between tries to make sure that there is a lease."""


def new_lease(node: str, node_uid: str, duration: int, now: float) -> dict[str, Any] | None:
    """None while the Node's UID isn't known (""): a lease without an owner would outlive its node."""
    if not node_uid:
        return None
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node, "namespace": NAMESPACE, "ownerReferences": [_owner(node, node_uid)]},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": duration, "renewTime": rfc3339_nano(now)},
    }


def renewed(lease: Mapping[str, Any], node: str, node_uid: str, duration: int, now: float) -> dict[str, Any]:
    """The lease as it was read, to be put back: renewed, and owned by the Node once that is known."""
    metadata = dict(lease.get("metadata") or {})
    if node_uid and not metadata.get("ownerReferences"):
        metadata["ownerReferences"] = [_owner(node, node_uid)]
    spec = {
        **(lease.get("spec") or {}),
        "holderIdentity": node,
        "leaseDurationSeconds": duration,
        "renewTime": rfc3339_nano(now),
    }
    return {**lease, "metadata": metadata, "spec": spec}


def seconds_to_next(duration: int, chance: float) -> float:
    """`chance`: 0 to 1."""
    return duration * RENEW_FRACTION * (1 + RENEW_JITTER * chance)


def _owner(node: str, uid: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
