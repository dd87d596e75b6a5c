"""Where a pod is at the API server, and how it's let go."""

from __future__ import annotations

import msgspec


def pods_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def pod_path(namespace: str, name: str) -> str:
    return f"{pods_path(namespace)}/{name}"


def delete_now(uid: str) -> bytes:
    """v1.DeleteOptions: at once, and only if it's still this one."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    return msgspec.json.encode(options)
