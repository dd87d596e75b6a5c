"""This machine, by /proc, /sys, /etc and statvfs. What can't be read is None or "", never an error."""

from __future__ import annotations

import os
from pathlib import Path

from services.status.core.model import Disk, Observation, SystemInfo
from services.status.core.parse_machine import parse_memory, parse_pretty_name, parse_tasks
from shared.kube.node_labels import go_architecture
from shared.runtime.machine import default_address

# kubelet 1.36 (cAdvisor): the first of these that exists.
_MACHINE_ID = ("etc/machine-id", "var/lib/dbus/machine-id")
_SYSTEM_UUID = (
    "sys/class/dmi/id/product_uuid",
    "proc/device-tree/system-id",
    "proc/device-tree/vm,uuid",
    "etc/machine-id",
)
_OS_RELEASE = ("etc/os-release", "usr/lib/os-release")
_HUGE_PAGES = "sys/kernel/mm/hugepages"


class MachineProbe:
    """NodeProbe (services.status.ports). `root`: where this machine's / is seen."""

    def __init__(self, data_dir: Path, node_ip: str, root: Path = Path("/")) -> None:
        self._data = data_dir
        self._node_ip = node_ip
        self._root = root
        kernel = os.uname()
        self._system = SystemInfo(
            machine_id=self._first(_MACHINE_ID),
            system_uuid=self._first(_SYSTEM_UUID),
            boot_id=self._read("proc/sys/kernel/random/boot_id"),
            kernel_version=kernel.release,
            os_image=parse_pretty_name(self._first(_OS_RELEASE)),
            architecture=go_architecture(kernel.machine),
        )

    def observe(self, image_root: str) -> Observation:
        memory = parse_memory(self._read("proc/meminfo"))
        tasks = parse_tasks(
            self._read("proc/sys/kernel/pid_max"),
            self._read("proc/sys/kernel/threads-max"),
            self._read("proc/loadavg"),
        )
        return Observation(
            system=self._system,
            cores=os.cpu_count() or 0,
            address=self._node_ip or default_address(),
            memory_total=None if memory is None else memory.total,
            memory_available=None if memory is None else memory.available,
            swap_total=0 if memory is None else memory.swap_total,
            huge_pages=self._huge_pages(),
            nodefs=_disk(str(self._data)),
            imagefs=_disk(image_root) if image_root else None,
            pids_max=None if tasks is None else tasks[0],
            pids_running=None if tasks is None else tasks[1],
        )

    def _huge_pages(self) -> dict[int, int]:
        found: dict[int, int] = {}
        try:
            directories = sorted((self._root / _HUGE_PAGES).iterdir())
        except OSError:
            return found
        for directory in directories:
            size = directory.name.removeprefix("hugepages-").removesuffix("kB")
            count = self._read(f"{_HUGE_PAGES}/{directory.name}/nr_hugepages")
            if size.isdecimal() and count.isdecimal():
                found[int(size) * 1024] = int(size) * 1024 * int(count)
        return found

    def _first(self, names: tuple[str, ...]) -> str:
        return next((text for name in names if (text := self._read(name))), "")

    def _read(self, name: str) -> str:
        try:
            return (self._root / name).read_text(errors="replace").strip("\0\n ")
        except OSError:
            return ""


def _disk(path: str) -> Disk | None:
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return Disk(
        capacity=found.f_blocks * found.f_frsize,
        available=found.f_bavail * found.f_frsize,
        inodes=found.f_files,
        inodes_free=found.f_ffree,
    )
