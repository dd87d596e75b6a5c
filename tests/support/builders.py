"""Pods, memories and runtime facts for tests: name what a test is about, the rest has sensible values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from services.podworker.core.container_config import container_hash
from services.podworker.core.generate import generate_status, remember_status
from services.podworker.core.model import PodMemory, RuntimeContainer, RuntimePod, RuntimeSandbox
from services.podworker.core.node_facts import NodeFacts
from shared.kube.pod import Container, Pod

GOLDEN = Path(__file__).parent.parent / "golden"
NOW = 1_800_000_000.0
UID = "0123456789abcdef0123456789abcdef"
NODE_NAME = "node1"
NODE_IP = "192.0.2.1"
POD_IP = "172.17.0.2"


def a_container(name: str = "c", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox:1.36", "command": ["sleep", "1000"], **fields}


def a_pod(*containers: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> Pod:
    """A pod of those containers (without any, one that sleeps); keywords are fields of its spec."""
    body = {
        "metadata": {
            "name": "p-node1",
            "namespace": "default",
            "uid": UID,
            "annotations": annotations or {},
        },
        "spec": {"containers": list(containers) or [a_container()], **spec},
    }
    return msgspec.convert(body, Pod)


def golden_pod(case: str) -> Pod:
    """The pod of a golden manifest (a01...), as a source would hand it over."""
    (path,) = (GOLDEN / "cases").glob(f"{case}-*.yaml")
    body = yaml.safe_load(path.read_text())
    meta = body["metadata"]
    meta.update(name=f"{meta['name']}-{NODE_NAME}", namespace="default", uid=UID)
    body["spec"]["nodeName"] = NODE_NAME
    for container in body["spec"]["containers"]:
        resources = container.get("resources", {})
        if "limits" in resources:
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    return msgspec.convert(body, Pod)


def a_node(**fields: Any) -> NodeFacts:
    facts: dict[str, Any] = {
        "instance": "test",
        "node_name": NODE_NAME,
        "data_dir": "/data",
        "sandbox_image": "podbus/pause:3.10",
        "memory_bytes": 8 * 2**30,
        "allow_negative_oom": False,
        **fields,
    }
    return NodeFacts(**facts)


def a_memory(pod: Pod | None = None, **fields: Any) -> PodMemory:
    """An admitted file pod's memory."""
    values: dict[str, Any] = {
        "uid": UID,
        "namespace": "default",
        "name": pod.metadata.name if pod else "p-node1",
        "source": "file",
        "admitted": True,
        **fields,
    }
    return PodMemory(**values)


def a_sandbox(attempt: int = 0, *, ready: bool = True, **fields: Any) -> RuntimeSandbox:
    values: dict[str, Any] = {
        "id": f"sandbox-{attempt}",
        "attempt": attempt,
        "ready": ready,
        "created_at": NOW - 100 + attempt,
        "ips": (POD_IP,) if ready else (),
        **fields,
    }
    return RuntimeSandbox(**values)


def running(container: Container, attempt: int = 0, **fields: Any) -> RuntimeContainer:
    """A running instance of the container of a file pod."""
    values: dict[str, Any] = {
        "id": f"{container.name}-{attempt}",
        "name": container.name,
        "attempt": attempt,
        "state": "running",
        "sandbox_id": "sandbox-0",
        "image": container.image,
        "image_id": "docker://sha256:1",
        "created_at": NOW - 50 + attempt,
        "started_at": NOW - 50 + attempt,
        "hash": container_hash(container, "file"),
        "pre_stop": container.lifecycle.pre_stop if container.lifecycle is not None else None,
        **fields,
    }
    return RuntimeContainer(**values)


def exited(container: Container, code: int = 0, attempt: int = 0, **fields: Any) -> RuntimeContainer:
    values: dict[str, Any] = {"state": "exited", "exit_code": code, "finished_at": NOW - 1, **fields}
    return running(container, attempt, **values)


def cannot_run(container: Container, attempt: int = 0, **fields: Any) -> RuntimeContainer:
    """An instance whose start the engine refused."""
    values: dict[str, Any] = {
        "state": "exited",
        "exit_code": 127,
        "started_at": None,
        "error": "no such file",
        **fields,
    }
    return running(container, attempt, **values)


def a_runtime(*containers: RuntimeContainer, sandboxes: tuple[RuntimeSandbox, ...] | None = None) -> RuntimePod:
    """What the engine shows: by default one ready sandbox, and the containers newest first as given."""
    shown = (a_sandbox(),) if sandboxes is None else sandboxes
    return RuntimePod(uid=UID, namespace="default", name="p-node1", sandboxes=shown, containers=tuple(containers))


def stored(pod: Pod, memory: PodMemory, runtime: RuntimePod, now: float = NOW) -> PodMemory:
    """The memory after the status was stored."""
    status = generate_status(pod, memory, runtime, node_ip=NODE_IP, now=now)
    return remember_status(memory, status, now=now)


def nothing() -> RuntimePod:
    return a_runtime(sandboxes=())
