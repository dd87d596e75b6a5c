"""Samples -> the Summary of /stats/summary, in the kubelet's key order.

A key whose value wasn't measured is absent. Times are RFC 3339 in whole seconds: of the sample, not of the
request.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from services.stats.core.live import told_containers, told_pod
from services.stats.core.model import (
    CgroupSample,
    ContainerHistory,
    DiskShare,
    FilesystemSample,
    NetworkSample,
    NodeHistory,
    PodHistory,
    Pressure,
    PressurePair,
    SystemHistory,
    TaskSample,
    VolumeShare,
)
from services.stats.core.summary_types import (
    ContainerStats,
    CPUStats,
    FsStats,
    InterfaceStats,
    IOStats,
    MemoryStats,
    NetworkStats,
    NodeStats,
    PodReference,
    PodStats,
    ProcessStats,
    PSIData,
    PSIStats,
    RlimitStats,
    RuntimeStats,
    Summary,
    SwapStats,
    VolumeStats,
)
from services.stats.core.window import usage_nano_cores
from shared.kube.times import rfc3339

DEFAULT_INTERFACE = "eth0"
"""kubelet 1.36: the interface that is also told inline, by this very name, on the node too."""


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
            swap=_swap(node.window),
        )
    return NodeStats(
        node_name=node.name,
        system_containers=system or None,
        start_time=start_time,
        cpu=cpu,
        memory=memory,
        io=_io(node.window),
        network=_network(node.network),
        fs=_filesystem(node.filesystem),
        runtime=None if node.images is None else RuntimeStats(image_fs=_filesystem(node.images)),
        rlimit=_rlimit(node.tasks),
        swap=_swap(node.window),
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
    if target.start_time is None or not told_pod(pod):
        return None
    reference = PodReference(name=target.name, namespace=target.namespace, uid=target.uid)
    swap, io = _swap(pod.window), _io(pod.window)
    if only_cpu_and_memory:
        return PodStats(
            pod_ref=reference,
            start_time=_time(target.start_time),
            containers=[_container(one, with_disk=False) for one in told_containers(pod)],
            cpu=_cpu(pod.window),
            memory=_memory(pod.window),
            swap=swap,
        )
    tasks = pod.window[-1].usage.tasks if pod.window else None
    return PodStats(
        pod_ref=reference,
        start_time=_time(target.start_time),
        containers=[_container(one) for one in told_containers(pod)],
        cpu=_cpu(pod.window),
        memory=_memory(pod.window),
        io=io,
        network=_network(pod.network),
        volume=[_volume(one) for one in pod.volumes] or None,
        ephemeral_storage=_ephemeral(pod),
        process_stats=None if tasks is None else ProcessStats(process_count=tasks),
        swap=swap,
    )


def _container(container: ContainerHistory, *, with_disk: bool = True) -> ContainerStats:
    return ContainerStats(
        name=container.target.name,
        start_time=_time(container.target.started_at),
        cpu=_cpu(container.window),
        memory=_memory(container.window),
        io=_io(container.window) if with_disk else None,
        rootfs=_share(container.rootfs) if with_disk else None,
        logs=_share(container.logs, whole=True) if with_disk else None,
        swap=_swap(container.window),
    )


def _swap(window: tuple[CgroupSample, ...]) -> SwapStats | None:
    memory = window[-1].usage.memory if window else None
    if memory is None or memory.swap is None:
        return None
    limit = window[-1].usage.swap_limit
    return SwapStats(
        time=_time(window[-1].at),
        swap_available_bytes=None if limit is None else max(0, limit - memory.swap),
        swap_usage_bytes=memory.swap,
    )


def _io(window: tuple[CgroupSample, ...]) -> IOStats | None:
    pressure = window[-1].usage.pressure if window else None
    if pressure is None or pressure.io is None:
        return None
    return IOStats(time=_time(window[-1].at), psi=_psi(pressure.io))


def _psi(pair: PressurePair | None) -> PSIStats | None:
    if pair is None:
        return None
    return PSIStats(full=_psi_data(pair.full), some=_psi_data(pair.some))


def _psi_data(pressure: Pressure) -> PSIData:
    return PSIData(total=pressure.total, avg10=pressure.avg10, avg60=pressure.avg60, avg300=pressure.avg300)


def _share(share: DiskShare | None, *, whole: bool = False) -> FsStats | None:
    """A directory's use of its filesystem. `whole`: cAdvisor tells the filesystem's used inodes for logs."""
    if share is None:
        return None
    filesystem, size = share.filesystem, share.size
    return FsStats(
        time=_time(size.at),
        available_bytes=filesystem.available,
        capacity_bytes=filesystem.capacity,
        used_bytes=size.used_bytes,
        inodes_free=filesystem.inodes_free,
        inodes=filesystem.inodes,
        inodes_used=filesystem.inodes - filesystem.inodes_free if whole else size.inodes,
    )


def _volume(volume: VolumeShare) -> VolumeStats:
    told = _share(volume.share)
    assert told is not None
    fields = {name: getattr(told, name) for name in told.__struct_fields__}
    return VolumeStats(**fields, name=volume.target.name)


def _ephemeral(pod: PodHistory) -> FsStats | None:
    """What the pod's containers and volumes use of the node's disk: writable layers, logs, local volumes. kubelet
    1.20.2: the inodes of logs don't count."""
    containers = told_containers(pod)
    layers = [one.rootfs for one in containers if one.rootfs is not None]
    logs = [one.logs for one in containers if one.logs is not None]
    local = [one.share for one in pod.volumes if one.target.is_local]
    shares = [*logs, *layers, *local]
    if not shares:
        return None
    filesystem = shares[0].filesystem
    return FsStats(
        time=_time(max(one.size.at for one in shares)),
        available_bytes=filesystem.available,
        capacity_bytes=filesystem.capacity,
        used_bytes=sum(one.size.used_bytes for one in shares),
        inodes_free=filesystem.inodes_free,
        inodes=filesystem.inodes,
        inodes_used=sum(one.size.inodes for one in (*layers, *local)),
    )


def _cpu(window: tuple[CgroupSample, ...]) -> CPUStats | None:
    if not window or window[-1].usage.cpu_ns is None:
        return None
    return CPUStats(
        time=_time(window[-1].at),
        usage_nano_cores=usage_nano_cores(window),
        usage_core_nano_seconds=window[-1].usage.cpu_ns,
        psi=None if (pressure := window[-1].usage.pressure) is None else _psi(pressure.cpu),
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
        psi=None if (pressure := window[-1].usage.pressure) is None else _psi(pressure.memory),
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
