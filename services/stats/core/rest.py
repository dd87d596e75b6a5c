"""cAdvisor's REST answers (v1.3, v2.0, v2.1) from what was sampled. Cpu and memory have their two minutes of history;
what only the pages for Prometheus need is in the newest sample alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.stats.core.live import told_containers, told_pod
from services.stats.core.machine import MachineFacts
from services.stats.core.model import NodeHistory, PodHistory
from services.stats.core.rest_shapes import Entry, Json, filesystems, machine_info, spec, stats_v1, stats_v2
from shared.kube.names import (
    LABEL_CONTAINER_NAME,
    LABEL_POD_NAME,
    LABEL_POD_NAMESPACE,
    LABEL_POD_UID,
    SANDBOX_CONTAINER,
    ContainerName,
)

VERSIONS = ("v1.0", "v1.1", "v1.2", "v1.3", "v2.0", "v2.1")
CADVISOR_VERSION = ""
"""Not cAdvisor's own: told as empty, as the kubelet does."""
_V1_COUNT = 60
_V2_COUNT = 64


class Refused(Exception):
    """An answer that isn't 200."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def answer(
    path: str, options: Mapping[str, str], node: NodeHistory, pods: Iterable[PodHistory], machine: MachineFacts
) -> Any:
    """`path`: below /api/. Raises Refused."""
    version, _, rest = path.strip("/").partition("/")
    kind, _, name = rest.partition("/")
    if version not in VERSIONS:
        raise Refused(400, f'unsupported API version "{version}"')
    if kind == "machine":
        return machine_info(machine, node)
    entries = list(entries_of(node, pods))
    if version.startswith("v1"):
        return _v1(kind, name, options, entries)
    return _v2(kind, name, options, entries, machine, is_newest=version == "v2.1")


def entries_of(node: NodeHistory, pods: Iterable[PodHistory]) -> Iterable[Entry]:
    """The node, its pods' cgroups, and the containers."""
    yield Entry(
        path="/",
        created_at=node.created_at or 0.0,
        window=node.window,
        texts=node.texts,
        network=node.network,
        filesystem=node.filesystem,
        device=node.device,
    )
    for pod in pods:
        if not told_pod(pod):
            continue
        target = pod.target
        if pod.window:
            yield Entry(path=target.cgroup, created_at=pod.created_at or 0.0, window=pod.window, texts=pod.texts)
        of_pod = {
            LABEL_POD_NAME: target.name,
            LABEL_POD_NAMESPACE: target.namespace,
            LABEL_POD_UID: target.uid,
        }

        def docker_name(container: str, attempt: int, pod: PodHistory = pod) -> str:
            target = pod.target
            return str(ContainerName(container, target.name, target.namespace, target.uid, attempt))

        if pod.sandbox_window:
            yield Entry(
                path=pod.sandbox_path,
                id=target.sandbox_id,
                name=docker_name(SANDBOX_CONTAINER, target.sandbox_attempt),
                labels={LABEL_CONTAINER_NAME: SANDBOX_CONTAINER, **of_pod},
                created_at=target.sandbox_started_at,
                window=pod.sandbox_window,
                texts=pod.sandbox_texts,
                network=pod.network,
            )
        for one in told_containers(pod):
            yield Entry(
                path=one.path,
                id=one.target.id,
                name=docker_name(one.target.name, one.target.attempt),
                image=one.target.image,
                labels={LABEL_CONTAINER_NAME: one.target.name, **of_pod},
                created_at=one.target.started_at,
                window=one.window,
                texts=one.texts,
                shares=tuple(share for share in (one.rootfs, one.logs) if share is not None),
                device=node.device,
            )


def _v1(kind: str, name: str, options: Mapping[str, str], entries: Sequence[Entry]) -> Any:
    count = _count(options.get("num_stats"), _V1_COUNT)
    if kind in ("containers", "subcontainers"):
        path = "/" + name.strip("/")
        below = [one for one in entries if one.path == path or one.path.startswith(path.rstrip("/") + "/")]
        if not any(one.path == path for one in below):
            raise Refused(500, f'failed to get container "{path}" with error: unknown container "{path}"')
        told = below if kind == "subcontainers" else [one for one in below if one.path == path]
        infos = [_info(one, entries, count) for one in told]
        return infos if kind == "subcontainers" else infos[0]
    if kind == "docker":
        return {one.path: _info(one, entries, count) for one in _of_docker(name.strip("/"), entries)}
    raise Refused(400, f'unknown request type "{kind}"')


def _v2(
    kind: str,
    name: str,
    options: Mapping[str, str],
    entries: Sequence[Entry],
    machine: MachineFacts,
    *,
    is_newest: bool,
) -> Any:
    if kind == "version":
        return CADVISOR_VERSION
    if kind == "attributes":
        return {
            "kernel_version": machine.kernel_version,
            "container_os_version": machine.os_version,
            "cadvisor_version": CADVISOR_VERSION,
            "num_cores": machine.cores,
            "memory_capacity": machine.memory,
            "machine_id": machine.machine_id,
            "system_uuid": machine.system_uuid,
        }
    count = _count(options.get("count"), _V2_COUNT)
    if kind == "storage" or (kind == "machinestats" and is_newest):
        root = entries[0]
        return filesystems(root) if kind == "storage" else [stats_v2(root, at) for at in _last(root, count)]
    if kind not in ("stats", "spec"):
        raise Refused(400, f'unknown request type "{kind}"')
    found = _chosen(name, options, entries)
    if kind == "spec":
        return {one.path: spec(one) for one in found}
    if not is_newest:
        return {one.path: [stats_v2(one, at) for at in _last(one, count)] for one in found}
    return {
        one.path: {"spec": spec(one), "stats": [stats_v2(one, at) for at in _last(one, count)]}
        for one in found
        if one.path != "/"
    }


def _chosen(name: str, options: Mapping[str, str], entries: Sequence[Entry]) -> list[Entry]:
    kind = options.get("type", "name")
    recursive = options.get("recursive", "").lower() == "true"
    if kind == "docker":
        return _of_docker(name.strip("/"), entries)
    if kind != "name":
        raise Refused(400, f'unknown type "{kind}"')
    path = "/" + name.strip("/")
    found = [one for one in entries if one.path == path]
    if not found:
        raise Refused(500, f'unknown container "{path}"')
    return [one for one in entries if one.path.startswith(path)] if recursive else found


def _of_docker(name: str, entries: Sequence[Entry]) -> list[Entry]:
    """All of the engine's, or the one with this name or the beginning of its id."""
    containers = [one for one in entries if one.id]
    if not name:
        return containers
    found = [one for one in containers if one.name == name or one.id.startswith(name)]
    if len(found) != 1:
        raise Refused(500, f'unable to find Docker container "{name}"')
    return found


def _count(text: str | None, default: int) -> int:
    """-1 = all there are."""
    if not text:
        return default
    try:
        return int(text)
    except ValueError as error:
        raise Refused(400, f"not a count: {text!r}") from error


def _last(entry: Entry, count: int) -> range:
    size = len(entry.window)
    return range(0 if count < 0 else max(0, size - count), size)


def _info(entry: Entry, entries: Sequence[Entry], count: int) -> Json:
    told: Json = {"id": entry.id, "name": entry.path} if entry.id else {"name": entry.path}
    if entry.id:
        told |= {"aliases": [entry.name, entry.id], "namespace": "docker"}
    depth = entry.path.rstrip("/").count("/") + 1
    children = [one for one in entries if one is not entry and one.path.startswith(entry.path.rstrip("/") + "/")]
    return told | {
        "subcontainers": [{"name": one.path} for one in children if one.path.count("/") == depth or entry.path != "/"],
        "spec": spec(entry),
        "stats": [stats_v1(entry, at) for at in _last(entry, count)],
    }
