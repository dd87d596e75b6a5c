"""Facts of this machine that don't change while a process runs."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    cores: int
    memory_bytes: int
    address: str
    """Of the interface that the default route leaves by; 127.0.0.1 without one."""


def look_at_machine(node_ip: str = "") -> Machine:
    """`node_ip`: the configured address, which wins."""
    return Machine(cores=os.cpu_count() or 1, memory_bytes=_memory_bytes(), address=node_ip or default_address())


def _memory_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/meminfo has no MemTotal")


def default_address() -> str:
    """Connecting a datagram socket sends nothing; the kernel only picks the source address by its routes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
