"""What is known of the node (observed, configured, remembered) and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

MEMORY_PRESSURE = "MemoryPressure"
DISK_PRESSURE = "DiskPressure"
PID_PRESSURE = "PIDPressure"
READY = "Ready"
PRESSURES = (MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE)
"""In the kubelet's order; Ready comes after them."""


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    """A filesystem. Bytes and inodes; `inodes` 0 = it has no fixed number of them."""

    capacity: int
    available: int
    inodes: int
    inodes_free: int


class SystemInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What doesn't change until the next boot. "" = the machine doesn't tell."""

    machine_id: str
    system_uuid: str
    boot_id: str
    kernel_version: str
    os_image: str
    architecture: str
    """Go's name: amd64, arm64."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The machine now. None = couldn't be read: such a thing is left out, never taken for zero."""

    system: SystemInfo
    cores: int
    address: str
    memory_total: int | None
    """Bytes, as all sizes here."""
    memory_available: int | None
    swap_total: int = 0
    huge_pages: Mapping[int, int] = {}
    """Size of a page -> total of the pages of that size that the kernel holds."""
    nodefs: Disk | None
    """The filesystem of the data directory."""
    imagefs: Disk | None
    """The filesystem of the engine's root directory."""
    pids_max: int | None
    pids_running: int | None


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The configured part, from Settings and KubeletConfiguration."""

    name: str
    port: int
    version: str
    """podbus' own."""
    max_pods: int
    pods_per_core: int
    eviction_hard: Mapping[str, str]
    system_reserved: Mapping[str, str]
    kube_reserved: Mapping[str, str]
    devices: Mapping[str, int] = {}
    """How many of each extended resource."""
    max_images: int = 50
    """So many images are told of; -1 = all."""


class ConditionMemory(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["True", "False"]
    since: float
    """The last flip, seconds since the epoch."""


class NodeMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What must survive a restart of status, kept in status.db."""

    created_at: float
    """When this node was first computed."""
    boot_id: str = ""
    conditions: Mapping[str, ConditionMemory] = {}


class NodeEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to the node, for people."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
