"""Which kernel parameters a pod may set for itself (lifecycle 7.4; kubelet: pkg/kubelet/sysctl)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SAFE: Mapping[str, tuple[int, int]] = {
    "kernel.shm_rmid_forced": (0, 0),
    "net.ipv4.ip_local_port_range": (0, 0),
    "net.ipv4.tcp_syncookies": (0, 0),
    "net.ipv4.ping_group_range": (0, 0),
    "net.ipv4.ip_unprivileged_port_start": (0, 0),
    "net.ipv4.ip_local_reserved_ports": (3, 16),
    "net.ipv4.tcp_keepalive_time": (4, 5),
    "net.ipv4.tcp_keepalive_intvl": (4, 5),
    "net.ipv4.tcp_keepalive_probes": (4, 5),
    "net.ipv4.tcp_fin_timeout": (4, 6),
    "net.ipv4.tcp_rmem": (4, 15),
    "net.ipv4.tcp_wmem": (4, 15),
}
"""Safe ones, and the kernel since which each is the pod's own."""


def normal_sysctl(name: str) -> str:
    """With dots between its parts. Written with slashes, a dot inside a part stays apart: `net/ipv4/conf/eth0.1/x`."""
    first = re.search(r"[./]", name)
    if first is None or first[0] == ".":
        return name
    return name.translate({ord("/"): ".", ord("."): "/"})


def refused_sysctl(names: Iterable[str], kernel: tuple[int, int], allowed_unsafe: Iterable[str]) -> str:
    """The first that a pod may not set, normalised; "" = all are allowed. `allowed_unsafe`: names, or beginnings with
    "*"."""
    patterns = tuple(allowed_unsafe)
    for name in map(normal_sysctl, names):
        since = _SAFE.get(name)
        if (since is None or kernel < since) and not any(_matches(name, pattern) for pattern in patterns):
            return name
    return ""


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
