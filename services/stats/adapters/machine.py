"""The machine from /proc and /sys."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from services.stats.core.machine import (
    BlockDevice,
    MachineFacts,
    NetworkDevice,
    count_topology,
    parse_devices,
    parse_diskstats,
    parse_os_release,
)

_SECTOR = 512


class SystemMachine:
    """Read at each call: hot-plugged CPUs and disks are seen."""

    def __init__(self, data: Path, proc: Path = Path("/proc"), sys: Path = Path("/sys"), etc: Path = Path("/etc")):
        self._data = data
        self._proc = proc
        self._sys = sys
        self._etc = etc

    def facts(self) -> MachineFacts:
        threads = tuple(self._threads())
        physical, sockets = count_topology(threads)
        memory = _keys(self._text(self._proc / "meminfo"))
        cpu = self._text(self._proc / "cpuinfo")
        devices = parse_devices(self._text(self._proc / "partitions"))
        machine_id = self._text(self._etc / "machine-id").strip()
        own = self.device_of(str(self._data))
        return MachineFacts(
            cores=len(threads) or os.cpu_count() or 1,
            physical_cores=physical,
            sockets=sockets,
            memory=memory.get("MemTotal", 0),
            swap=memory.get("SwapTotal", 0),
            machine_id=machine_id,
            system_uuid=self._text(self._sys / "class/dmi/id/product_uuid").strip() or machine_id,
            boot_id=self._text(self._proc / "sys/kernel/random/boot_id").strip(),
            kernel_version=self._text(self._proc / "sys/kernel/osrelease").strip(),
            os_version=parse_os_release(self._text(self._etc / "os-release")),
            vendor_id=_cpu_field(cpu, "vendor_id"),
            cpu_khz=int(float(_cpu_field(cpu, "cpu MHz") or 0) * 1000),
            devices=devices,
            disk=parse_diskstats(self._text(self._proc / "diskstats"), own.removeprefix("/dev/")),
            topology=threads,
            blocks=tuple(self._blocks()),
            networks=tuple(self._networks()),
        )

    def device_of(self, path: str) -> str:
        """/dev/vda; "" for a filesystem without a block device."""
        try:
            number = os.stat(path).st_dev  # noqa: PTH116
        except OSError:
            return ""
        key = f"{os.major(number)}:{os.minor(number)}"
        return parse_devices(self._text(self._proc / "partitions")).get(key, "")

    def _threads(self) -> Iterator[tuple[int, int, int]]:
        for directory in sorted((self._sys / "devices/system/cpu").glob("cpu[0-9]*")):
            thread = int(directory.name.removeprefix("cpu"))
            if self._text(directory / "online").strip() == "0":
                continue
            core = self._text(directory / "topology/core_id").strip()
            socket = self._text(directory / "topology/physical_package_id").strip()
            yield thread, int(core or thread), max(0, int(socket or 0))

    def _blocks(self) -> Iterator[BlockDevice]:
        for directory in sorted((self._sys / "block").glob("*")):
            if directory.name.startswith(("loop", "ram", "sr")):
                continue
            major, _, minor = self._text(directory / "dev").strip().partition(":")
            told = self._text(directory / "queue/scheduler").strip()
            chosen = told.partition("[")[2].partition("]")[0]
            yield BlockDevice(
                name=directory.name,
                major=int(major or 0),
                minor=int(minor or 0),
                size=int(self._text(directory / "size").strip() or 0) * _SECTOR,
                scheduler=chosen or told or "none",
            )

    def _networks(self) -> Iterator[NetworkDevice]:
        for directory in sorted((self._sys / "class/net").glob("*")):
            if directory.name.startswith(("lo", "veth", "docker")) or not directory.is_dir():
                continue
            speed = self._text(directory / "speed").strip()
            yield NetworkDevice(
                name=directory.name,
                mac_address=self._text(directory / "address").strip(),
                speed=max(0, int(speed)) if speed.lstrip("-").isdigit() else 0,
                mtu=int(self._text(directory / "mtu").strip() or 0),
            )

    def _text(self, path: Path) -> str:
        try:
            return path.read_text("utf-8", "replace")
        except OSError:
            return ""


def _keys(meminfo: str) -> dict[str, int]:
    rows = (line.split() for line in meminfo.splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) >= 2 and row[1].isdigit()}


def _cpu_field(cpuinfo: str, key: str) -> str:
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""
