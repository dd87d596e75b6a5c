"""Pictures of static pods at the API server: which are to be made, and which to go.

kubelet 1.36, pkg/kubelet/pod/mirror_client.go: a copy of the static pod that names its hash and belongs to the Node.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shared.contracts.pods import MirrorPod

CONFIG_MIRROR = "kubernetes.io/config.mirror"


class StaticPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of a file or URL that should run."""

    uid: str
    namespace: str
    name: str
    body: bytes


class MirrorPlan(msgspec.Struct, frozen=True, kw_only=True):
    make: list[StaticPod] = []
    remove: list[MirrorPod] = []


def plan_mirrors(static: Mapping[str, StaticPod], there: Iterable[str], mirrors: Iterable[MirrorPod]) -> MirrorPlan:
    """`static` by UID; `there`: UIDs of which something is there, wanted or not. A static pod's hash is its UID. A
    picture goes after its pod, and the next one of its name comes after that."""
    shown = {*static, *there}
    remove, held = [], set()
    for mirror in mirrors:
        held.add((mirror.namespace, mirror.name))
        if mirror.hash not in shown or mirror.deleting:
            remove.append(mirror)
    make = [pod for pod in static.values() if (pod.namespace, pod.name) not in held]
    return MirrorPlan(make=make, remove=remove)


def mirror_of(pod: StaticPod, node: str, node_uid: str) -> dict[str, Any]:
    """The v1.Pod to be made."""
    body: dict[str, Any] = json.loads(pod.body)
    meta = body["metadata"]
    annotations = {**(meta.get("annotations") or {}), CONFIG_MIRROR: pod.uid}
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid, "controller": True}
    kept = {name: value for name, value in meta.items() if name not in ("uid", "resourceVersion", "creationTimestamp")}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**kept, "annotations": annotations, "ownerReferences": [owner]},
        "spec": body["spec"],
    }
