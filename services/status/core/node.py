"""The v1.Node of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from services.status.core.conditions import NodeCondition
from services.status.core.model import NodeSettings, Observation
from services.status.core.remote_node import RemoteNode
from shared.contracts.status import NodeImage, RuntimeReport
from shared.kube.allocatable import allocatable_bytes, allocatable_cpu_milli, max_pods
from shared.kube.node_labels import node_labels
from shared.kube.quantity import Quantity, QuantityFormat
from shared.kube.times import rfc3339
from shared.kube.version import KUBERNETES_VERSION

MAX_IMAGE_NAMES = 5
"""kubelet 1.36: names told of one image."""


class _Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Keys in Kubernetes' order, which is the fields'."""


class NodeMetadata(_Object, frozen=True, kw_only=True):
    name: str
    uid: str | UnsetType = UNSET
    creation_timestamp: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str] | UnsetType = UNSET


class NodeAddress(_Object, frozen=True, kw_only=True):
    type: str
    address: str


class DaemonEndpoint(_Object, frozen=True, kw_only=True):
    port: int = msgspec.field(name="Port")


class DaemonEndpoints(_Object, frozen=True, kw_only=True):
    kubelet_endpoint: DaemonEndpoint


class Swap(_Object, frozen=True, kw_only=True):
    capacity: int
    """Bytes."""


class NodeInfo(_Object, frozen=True, kw_only=True):
    machine_id: str = msgspec.field(name="machineID")
    system_uuid: str = msgspec.field(name="systemUUID")
    boot_id: str = msgspec.field(name="bootID")
    kernel_version: str
    os_image: str
    container_runtime_version: str
    kubelet_version: str
    kube_proxy_version: str = ""
    """Always empty, always written: the newest Kubernetes does so."""
    operating_system: str = "linux"
    architecture: str
    swap: Swap | UnsetType = UNSET


class ContainerImage(_Object, frozen=True, kw_only=True):
    names: list[str]
    size_bytes: int


class NodeStatus(_Object, frozen=True, kw_only=True):
    capacity: dict[str, str]
    allocatable: dict[str, str]
    conditions: list[NodeCondition]
    addresses: list[NodeAddress]
    daemon_endpoints: DaemonEndpoints
    node_info: NodeInfo
    images: list[ContainerImage] | UnsetType = UNSET


class Node(_Object, frozen=True, kw_only=True):
    kind: str = "Node"
    api_version: str = "v1"
    metadata: NodeMetadata
    spec: Mapping[str, Any] = {}
    status: NodeStatus


def build_node(
    settings: NodeSettings,
    seen: Observation,
    runtime: RuntimeReport | None,
    conditions: Sequence[NodeCondition],
    created_at: float,
) -> Node:
    """`runtime`: the newest report of the engine, None before the first one. `created_at`: seconds since the epoch."""
    status = NodeStatus(
        capacity=_texts(capacity(settings, seen)),
        allocatable=_texts(allocatable(settings, seen)),
        conditions=list(conditions),
        addresses=[
            NodeAddress(type="InternalIP", address=seen.address),
            NodeAddress(type="Hostname", address=settings.name),
        ],
        daemon_endpoints=DaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=settings.port)),
        node_info=_node_info(settings, seen, runtime),
        images=(runtime is not None and images(runtime.images, settings.max_images)) or UNSET,
    )
    metadata = NodeMetadata(
        name=settings.name,
        creation_timestamp=rfc3339(created_at),
        labels=node_labels(settings.name, seen.system.architecture),
    )
    return Node(metadata=metadata, status=status)


def with_remote(node: Node, remote: RemoteNode) -> Node:
    """The node with what only the API server knows of it: UID, labels, annotations, taints, podCIDR."""
    theirs = remote.metadata
    metadata = NodeMetadata(
        name=node.metadata.name,
        uid=theirs.uid or UNSET,
        creation_timestamp=theirs.creation_timestamp or node.metadata.creation_timestamp,
        labels=theirs.labels,
        annotations=theirs.annotations or UNSET,
    )
    return replace(node, metadata=metadata, spec=remote.spec)


def same_but_heartbeat(one: Node, other: Node) -> bool:
    """kubelet 1.36: what changes with each computation is no reason to report."""
    return _without_heartbeat(one) == _without_heartbeat(other)


def capacity(settings: NodeSettings, seen: Observation) -> dict[str, Quantity]:
    """What the machine has, by resource name."""
    found = {"cpu": Quantity.from_value(seen.cores)}
    if seen.nodefs is not None:
        found["ephemeral-storage"] = _bytes(seen.nodefs.capacity)
    for size, total in seen.huge_pages.items():
        found[f"hugepages-{_bytes(size)}"] = _bytes(total)
    if seen.memory_total is not None:
        found["memory"] = _bytes(seen.memory_total)
    found["pods"] = Quantity.from_value(max_pods(settings.max_pods, settings.pods_per_core, seen.cores))
    found |= {name: Quantity.from_value(count) for name, count in settings.devices.items()}
    return found


def allocatable(settings: NodeSettings, seen: Observation) -> dict[str, Quantity]:
    """What pods may have of it.

    kubelet 1.36: capacity - systemReserved - kubeReserved - evictionHard, at least 0; memory also without all huge
    pages, which only those who ask for them get.
    """
    found = capacity(settings, seen)
    reserved = (settings.system_reserved, settings.kube_reserved)
    found["cpu"] = Quantity.from_milli(allocatable_cpu_milli(seen.cores * 1000, *reserved))
    if seen.nodefs is not None:
        found["ephemeral-storage"] = _bytes(
            allocatable_bytes(
                seen.nodefs.capacity, "ephemeral-storage", "nodefs.available", settings.eviction_hard, *reserved
            )
        )
    if seen.memory_total is not None:
        memory = allocatable_bytes(seen.memory_total, "memory", "memory.available", settings.eviction_hard, *reserved)
        found["memory"] = _bytes(max(0, memory - sum(seen.huge_pages.values())))
    return found


def images(reported: Sequence[NodeImage], most: int) -> list[ContainerImage]:
    """kubelet 1.36: the largest first, each with at most five names. `most`: -1 = all."""
    largest = sorted(reported, key=lambda image: -image.size)
    if most >= 0:
        largest = largest[:most]
    return [ContainerImage(names=image.names[:MAX_IMAGE_NAMES], size_bytes=image.size) for image in largest]


def _node_info(settings: NodeSettings, seen: Observation, runtime: RuntimeReport | None) -> NodeInfo:
    return NodeInfo(
        machine_id=seen.system.machine_id,
        system_uuid=seen.system.system_uuid,
        boot_id=seen.system.boot_id,
        kernel_version=seen.system.kernel_version,
        os_image=seen.system.os_image,
        container_runtime_version=f"docker://{runtime.engine_version}" if runtime and runtime.engine_version else "",
        kubelet_version=f"{KUBERNETES_VERSION}+podbus.{settings.version}",
        architecture=seen.system.architecture,
        swap=Swap(capacity=seen.swap_total) if seen.swap_total else UNSET,
    )


def _bytes(amount: int) -> Quantity:
    return Quantity.from_value(amount, QuantityFormat.BINARY_SI)


def _texts(resources: Mapping[str, Quantity]) -> dict[str, str]:
    """Sorted by name, as Go writes maps."""
    return {name: str(resources[name]) for name in sorted(resources)}


def _without_heartbeat(node: Node) -> Node:
    conditions = [replace(condition, last_heartbeat_time="") for condition in node.status.conditions]
    return replace(node, status=replace(node.status, conditions=conditions))
