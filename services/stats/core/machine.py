"""What the machine is: for machine_* metrics and cAdvisor's MachineInfo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class DiskCounters(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line of /proc/diskstats: of the whole device since boot."""

    reads: int
    reads_merged: int
    sectors_read: int
    read_ms: int
    writes: int
    writes_merged: int
    sectors_written: int
    write_ms: int
    in_flight: int
    busy_ms: int
    weighted_ms: int


class NetworkDevice(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    mac_address: str
    speed: int
    mtu: int


class BlockDevice(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    major: int
    minor: int
    size: int
    scheduler: str


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True):
    cores: int = 1
    physical_cores: int = 1
    sockets: int = 1
    memory: int = 0
    swap: int = 0
    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    kernel_version: str = ""
    os_version: str = ""
    vendor_id: str = ""
    cpu_khz: int = 0
    devices: Mapping[str, str] = {}
    """Block devices' paths by `major:minor`."""
    disk: DiskCounters | None = None
    """Of the device that the data directory is on."""
    topology: tuple[tuple[int, int, int], ...] = ()
    """(thread, core, socket)."""
    blocks: tuple[BlockDevice, ...] = ()
    networks: tuple[NetworkDevice, ...] = ()


def parse_diskstats(text: str, device: str) -> DiskCounters | None:
    """The line of `device` (vda)."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 14 and fields[2] == device:
            return DiskCounters(**dict(zip(DiskCounters.__struct_fields__, map(int, fields[3:14]), strict=True)))
    return None


def parse_devices(partitions: str) -> dict[str, str]:
    """/proc/partitions -> paths by `major:minor`."""
    rows = (line.split() for line in partitions.splitlines())
    return {f"{row[0]}:{row[1]}": f"/dev/{row[3]}" for row in rows if len(row) == 4 and row[0].isdigit()}


def parse_os_release(text: str) -> str:
    """PRETTY_NAME of /etc/os-release."""
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip().strip('"')
    return "Linux"


def count_topology(threads: Iterable[tuple[int, int, int]]) -> tuple[int, int]:
    """(thread, core, socket) -> physical cores and sockets, at least one of each."""
    found = list(threads)
    cores = {(socket, core) for _, core, socket in found}
    return max(1, len(cores)), max(1, len({socket for _, _, socket in found}))
