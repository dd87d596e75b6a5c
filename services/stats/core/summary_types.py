"""The kubelet's Summary as types: its keys in its order. A key whose value is None is absent."""

from __future__ import annotations

import msgspec


class _Stats(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class CPUStats(_Stats, frozen=True, kw_only=True):
    time: str
    usage_nano_cores: int | None = None
    usage_core_nano_seconds: int | None = None
    psi: PSIStats | None = None


class MemoryStats(_Stats, frozen=True, kw_only=True):
    time: str
    available_bytes: int | None = None
    usage_bytes: int | None = None
    working_set_bytes: int | None = None
    rss_bytes: int | None = None
    page_faults: int | None = None
    major_page_faults: int | None = None
    psi: PSIStats | None = None


class PSIData(_Stats, frozen=True, kw_only=True):
    """Percent of the time; `total` in the kernel's microseconds, as cAdvisor passes them on."""

    total: int
    avg10: float
    avg60: float
    avg300: float


class PSIStats(_Stats, frozen=True, kw_only=True):
    full: PSIData
    some: PSIData


class SwapStats(_Stats, frozen=True, kw_only=True):
    time: str
    swap_available_bytes: int | None = None
    swap_usage_bytes: int | None = None


class IOStats(_Stats, frozen=True, kw_only=True):
    time: str
    psi: PSIStats | None = None


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
    io: IOStats | None = None
    rootfs: FsStats | None = None
    logs: FsStats | None = None
    swap: SwapStats | None = None


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
    io: IOStats | None = None
    network: NetworkStats | None = None
    volume: list[VolumeStats] | None = None
    ephemeral_storage: FsStats | None = msgspec.field(default=None, name="ephemeral-storage")
    process_stats: ProcessStats | None = msgspec.field(default=None, name="process_stats")
    swap: SwapStats | None = None


class RuntimeStats(_Stats, frozen=True, kw_only=True):
    image_fs: FsStats | None = None
    container_fs: FsStats | None = None


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
    io: IOStats | None = None
    network: NetworkStats | None = None
    fs: FsStats | None = None
    runtime: RuntimeStats | None = None
    rlimit: RlimitStats | None = None
    swap: SwapStats | None = None


class Summary(_Stats, frozen=True, kw_only=True):
    node: NodeStats
    pods: list[PodStats]
