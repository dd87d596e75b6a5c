"""Our messages -> the kubelet's JSON, as bytes. An item is made once per version and then only joined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from shared.contracts.worker import RunningPods
from shared.kube.times import rfc3339

PENDING = b'{"phase":"Pending"}'
"""The status of a pod that its worker hasn't spoken of yet."""

_LIST_HEAD = b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":'
_METADATA_ORDER = {
    name: place
    for place, name in enumerate(
        (
            "name",
            "generateName",
            "namespace",
            "selfLink",
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "labels",
            "annotations",
            "ownerReferences",
            "finalizers",
            "managedFields",
        )
    )
}


class _Body(msgspec.Struct, frozen=True):
    """The parts of a v1.Pod; spec and status are passed on as they came."""

    metadata: dict[str, Any]
    spec: msgspec.Raw
    status: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Deletion(msgspec.Struct, frozen=True):
    """A pod that was told to end."""

    at: float
    """Seconds since the epoch."""
    grace: int
    """Seconds."""


def pod_item(body: bytes, status: bytes | None, deletion: Deletion | None) -> bytes:
    """One item of a PodList: the pod without kind and apiVersion, with what its worker says in place of the
    status. `body` is a v1.Pod as JSON, `status` a v1.PodStatus. Raises msgspec.MsgspecError.

    Kubernetes: deletionTimestamp is when the grace period will be over, not when the end was asked for.
    """
    pod = msgspec.json.decode(body, type=_Body)
    metadata = pod.metadata
    if metadata.get("creationTimestamp", "") is None:  # newest Kubernetes leaves a zero time out
        del metadata["creationTimestamp"]
    if deletion is not None and "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = rfc3339(deletion.at + deletion.grace)
        metadata["deletionGracePeriodSeconds"] = deletion.grace
    last = len(_METADATA_ORDER)
    ordered = dict(sorted(metadata.items(), key=lambda item: _METADATA_ORDER.get(item[0], last)))
    if status is None:
        status = PENDING if pod.status is msgspec.UNSET else bytes(pod.status)
    return as_go_writes(
        b"".join(
            (
                b'{"metadata":',
                msgspec.json.encode(ordered),
                b',"spec":',
                bytes(pod.spec),
                b',"status":',
                status,
                b"}",
            )
        )
    )


def pod_list(items: Iterable[bytes]) -> bytes:
    """kubelet: compact, a newline at the end, `null` when there is none."""
    joined = b",".join(items)
    return b"".join((_LIST_HEAD, b"[", joined, b"]}\n")) if joined else _LIST_HEAD + b"null}\n"


def running_pods(running: RunningPods) -> bytes:
    """/runningpods/: names and images only. kubelet: rebuilt from the runtime, the status is empty."""
    return pod_list(
        as_go_writes(
            msgspec.json.encode(
                {
                    "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
                    "spec": {
                        "containers": [
                            {"name": container.name, "image": container.image, "resources": {}}
                            for container in pod.containers
                        ]
                    },
                    "status": {},
                }
            )
        )
        for pod in running.pods
    )


def as_go_writes(text: bytes) -> bytes:
    """JSON with the escapes that Go's encoder makes. These bytes occur inside strings only, so replacing them
    is safe; who compares bodies byte by byte with a kubelet's sees the same."""
    for plain, escaped in _GO_ESCAPES:
        if plain in text:
            text = text.replace(plain, escaped)
    return text


_GO_ESCAPES = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)
