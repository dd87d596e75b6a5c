"""Small pods as manifests, given to a node, and a look into their containers."""

from __future__ import annotations

from typing import Any

import yaml

from tests.support.eventually import eventually
from tests.support.node import Node, is_ready

WAIT = "trap 'exit 0' TERM; sleep 3600 & wait"
Json = dict[str, Any]


def container(script: str, name: str = "c", **fields: Any) -> Json:
    return {"name": name, "image": "busybox:1.36", "command": ["sh", "-c", script], **fields}


def apply(node: Node, name: str, *containers: Json, more: tuple[Json, ...] = (), **spec: Any) -> None:
    """A pod, and beside it in its file whatever else it needs."""
    meta = {"name": name, **spec.pop("metadata", {})}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"terminationGracePeriodSeconds": 2, "containers": list(containers), **spec},
    }
    node.apply(f"{name}.yaml", yaml.safe_dump_all([pod, *more]))


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def mount(name: str, path: str, **fields: Any) -> Json:
    return {"name": name, "mountPath": path, **fields}


def uid_of(node: Node, pod: str) -> str:
    return str(node.pod(pod)["metadata"]["uid"])


def container_id(node: Node, pod: str, name: str = "c") -> str:
    filters = (f"label=io.kubernetes.pod.uid={uid_of(node, pod)}", f"label=io.kubernetes.container.name={name}")
    return node.docker("ps", "-q", "--filter", filters[0], "--filter", filters[1]).split()[0]


def run_in(node: Node, pod: str, script: str, name: str = "c") -> str:
    return node.docker("exec", container_id(node, pod, name), "sh", "-c", script)


def ready(node: Node, pod: str) -> None:
    """Wait for it; else tell what its containers wait for."""

    def check() -> bool:
        status = node.pod(pod)["status"]
        assert is_ready(node.pod(pod)), [one["state"] for one in status.get("containerStatuses", [status])]
        return True

    eventually(check, within=30)


def waiting(node: Node, pod: str) -> tuple[str, str]:
    """(reason, message) of its first container."""
    state = node.pod(pod)["status"]["containerStatuses"][0]["state"]["waiting"]
    return state["reason"], state.get("message", "")


def events(node: Node, pod: str, reason: str) -> list[str]:
    found = node.json(f"/podbus/events?namespace=default&name={pod}-{node.name}")["events"]
    return [event["message"] for event in found if event["reason"] == reason]
