"""Samples -> the Summary of /stats/summary, in the kubelet's key order.

A key whose value wasn't measured is absent. Times are RFC 3339 in whole seconds: of the sample, not of the
request. `rootfs`, `logs`, `volume`, `ephemeral-storage` and `process_stats` have their place in the order
but aren't filled yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from services.stats.core.model import (
    CgroupSample,
    ContainerHistory,
    FilesystemSample,
    NetworkSample,
    NodeHistory,
    PodHistory,
    SystemHistory,
    TaskSample,
)
from services.stats.core.window import usage_nano_cores
from shared.kube.times import rfc3339

DEFAULT_INTERFACE = "eth0"
"""kubelet 1.36: the interface that is also told inline, by this very name, on the node too."""


class _Stats(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class CPUStats(_Stats, frozen=True, kw_only=True):
    time: str
    usage_nano_cores: int | None = None
    usage_core_nano_seconds: int | None = None


class MemoryStats(_Stats, frozen=True, kw_only=True):
    time: str
    available_bytes: int | None = None
    usage_bytes: int | None = None
    working_set_bytes: int | None = None
    rss_bytes: int | None = None
    page_faults: int | None = None
    major_page_faults: int | None = None


class InterfaceStats(_Stats, frozen=True, kw_only=True):
    name: str
    rx_bytes: int
    rx_errors: int
    tx_bytes: int
    tx_errors: int


class NetworkStats(_Stats, frozen=True, kw_only=True):
    time: str
    name: str
    """The default interface, whose numbers follow; "" when there is none."""
    rx_bytes: int | None = None
    rx_errors: int | None = None
    tx_bytes: int | None = None
    tx_errors: int | None = None
    interfaces: list[InterfaceStats]


class FsStats(_Stats, frozen=True, kw_only=True):
    time: str
    available_bytes: int | None = None
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    inodes_free: int | None = None
    inodes: int | None = None
    inodes_used: int | None = None


class VolumeStats(FsStats, frozen=True, kw_only=True):
    name: str


class ContainerStats(_Stats, frozen=True, kw_only=True):
    """A container, or a system container of the node."""

    name: str
    start_time: str | None
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    rootfs: FsStats | None = None
    logs: FsStats | None = None


class PodReference(_Stats, frozen=True, kw_only=True):
    name: str
    namespace: str
    uid: str


class ProcessStats(_Stats, frozen=True, kw_only=True, rename=None):
    process_count: int


class PodStats(_Stats, frozen=True, kw_only=True):
    pod_ref: PodReference
    start_time: str
    containers: list[ContainerStats]
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    network: NetworkStats | None = None
    volume: list[VolumeStats] | None = None
    ephemeral_storage: FsStats | None = msgspec.field(default=None, name="ephemeral-storage")
    process_stats: ProcessStats | None = msgspec.field(default=None, name="process_stats")


class RuntimeStats(_Stats, frozen=True, kw_only=True):
    image_fs: FsStats | None = None


class RlimitStats(_Stats, frozen=True, kw_only=True):
    time: str
    maxpid: int
    curproc: int


class NodeStats(_Stats, frozen=True, kw_only=True):
    node_name: str
    system_containers: list[ContainerStats] | None = None
    start_time: str | None
    cpu: CPUStats | None = None
    memory: MemoryStats | None = None
    network: NetworkStats | None = None
    fs: FsStats | None = None
    runtime: RuntimeStats | None = None
    rlimit: RlimitStats | None = None


class Summary(_Stats, frozen=True, kw_only=True):
    node: NodeStats
    pods: list[PodStats]


def encode(summary: Summary, indent: bool = False) -> bytes:
    """JSON bytes: compact, or indented by one space as the kubelet prints it."""
    raw = _ENCODER.encode(summary)
    return pretty(raw) if indent else raw


def pretty(raw: bytes) -> bytes:
    """Any JSON text, indented by one space; nothing at its end."""
    return msgspec.json.format(raw, indent=1)


def build_summary(node: NodeHistory, pods: Iterable[PodHistory], *, only_cpu_and_memory: bool = False) -> Summary:
    """The Summary of what was sampled last.

    kubelet 1.36: a pod without a start time isn't told. Neither is one of which nothing runs any more,
    although its cgroup may still be there: that would be zeros with a fresh time.
    """
    return Summary(
        node=_node(node, only_cpu_and_memory),
        pods=[stats for pod in pods if (stats := _pod(pod, only_cpu_and_memory)) is not None],
    )


def _node(node: NodeHistory, only_cpu_and_memory: bool) -> NodeStats:
    system = [_system(one, node.memory_total) for one in node.system if one.window]
    cpu, memory = _cpu(node.window), _memory(node.window)
    start_time = _time_or_null(node.boot_at)
    if only_cpu_and_memory:
        return NodeStats(
            node_name=node.name,
            system_containers=system or None,
            start_time=start_time,
            cpu=cpu,
            memory=memory,
        )
    return NodeStats(
        node_name=node.name,
        system_containers=system or None,
        start_time=start_time,
        cpu=cpu,
        memory=memory,
        network=_network(node.network),
        fs=_filesystem(node.filesystem),
        runtime=None if node.images is None else RuntimeStats(image_fs=_filesystem(node.images)),
        rlimit=_rlimit(node.tasks),
    )


def _system(system: SystemHistory, memory_total: int | None) -> ContainerStats:
    limit = system.target.memory_limit
    return ContainerStats(
        name=system.target.name,
        start_time=_time_or_null(system.created_at),
        cpu=_cpu(system.window),
        memory=_memory(system.window, default_limit=memory_total if limit is None else limit),
    )


def _pod(pod: PodHistory, only_cpu_and_memory: bool) -> PodStats | None:
    target = pod.target
    containers = [_container(one) for one in _newest_instances(pod.containers)]
    if target.start_time is None or not (containers or pod.sandbox_runs):
        return None
    return PodStats(
        pod_ref=PodReference(name=target.name, namespace=target.namespace, uid=target.uid),
        start_time=_time(target.start_time),
        containers=containers,
        cpu=_cpu(pod.window),
        memory=_memory(pod.window),
        network=None if only_cpu_and_memory else _network(pod.network),
    )


def _newest_instances(containers: Iterable[ContainerHistory]) -> list[ContainerHistory]:
    """One live instance per name, the newest, in the order of the names' first appearance.

    An instance whose cgroup is gone has no window. One that holds no memory at all has no process:
    metrics-server drops a whole pod for one container that reads 0 (kubernetes#103368), so it isn't told
    either.
    """
    newest: dict[str, ContainerHistory] = {}
    for one in containers:
        if not one.window:
            continue
        memory = one.window[-1].usage.memory
        if memory is not None and memory.usage == 0:
            continue
        known = newest.get(one.target.name)
        if known is None or known.target.started_at <= one.target.started_at:
            newest[one.target.name] = one
    return list(newest.values())


def _container(container: ContainerHistory) -> ContainerStats:
    return ContainerStats(
        name=container.target.name,
        start_time=_time(container.target.started_at),
        cpu=_cpu(container.window),
        memory=_memory(container.window),
    )


def _cpu(window: tuple[CgroupSample, ...]) -> CPUStats | None:
    if not window or window[-1].usage.cpu_ns is None:
        return None
    return CPUStats(
        time=_time(window[-1].at),
        usage_nano_cores=usage_nano_cores(window),
        usage_core_nano_seconds=window[-1].usage.cpu_ns,
    )


def _memory(window: tuple[CgroupSample, ...], default_limit: int | None = None) -> MemoryStats | None:
    memory = window[-1].usage.memory if window else None
    if memory is None:
        return None
    available = memory.available
    if available is None and default_limit is not None:
        available = max(0, default_limit - memory.working_set)
    return MemoryStats(
        time=_time(window[-1].at),
        available_bytes=available,
        usage_bytes=memory.usage,
        working_set_bytes=memory.working_set,
        rss_bytes=memory.rss,
        page_faults=memory.page_faults,
        major_page_faults=memory.major_page_faults,
    )


def _network(sample: NetworkSample | None) -> NetworkStats | None:
    if sample is None:
        return None
    interfaces = [
        InterfaceStats(
            name=one.name,
            rx_bytes=one.rx_bytes,
            rx_errors=one.rx_errors,
            tx_bytes=one.tx_bytes,
            tx_errors=one.tx_errors,
        )
        for one in sample.interfaces
    ]
    default = next((one for one in interfaces if one.name == DEFAULT_INTERFACE), None)
    if default is None:
        return NetworkStats(time=_time(sample.at), name="", interfaces=interfaces)
    return NetworkStats(
        time=_time(sample.at),
        name=default.name,
        rx_bytes=default.rx_bytes,
        rx_errors=default.rx_errors,
        tx_bytes=default.tx_bytes,
        tx_errors=default.tx_errors,
        interfaces=interfaces,
    )


def _filesystem(sample: FilesystemSample | None) -> FsStats | None:
    if sample is None:
        return None
    usage = sample.usage
    return FsStats(
        time=_time(sample.at),
        available_bytes=usage.available,
        capacity_bytes=usage.capacity,
        used_bytes=None if sample.used_bytes is None else min(sample.used_bytes, usage.capacity),
        inodes_free=usage.inodes_free,
        inodes=usage.inodes,
        inodes_used=usage.inodes - usage.inodes_free,
    )


def _rlimit(sample: TaskSample | None) -> RlimitStats | None:
    if sample is None:
        return None
    return RlimitStats(time=_time(sample.at), maxpid=sample.limits.maximum, curproc=sample.limits.running)


def _time_or_null(instant: float | None) -> str | None:
    """kubelet 1.36: a zero time is written as null."""
    return None if instant is None else _time(instant)


def _time(instant: float) -> str:
    return _whole_seconds(int(instant))


_whole_seconds = lru_cache(maxsize=1024)(rfc3339)
"""A summary has a thousand times but few different ones: 100 pods would spend a millisecond on formatting
them."""

_ENCODER = msgspec.json.Encoder()
