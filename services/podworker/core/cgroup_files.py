"""A pod's limits as the kernel wants them, in cgroup v1 and v2, and where its cgroup is with either driver."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from services.podworker.core.pod_limits import PodLimits
from services.podworker.core.pod_resources import value
from services.podworker.core.resources import CPU_PERIOD_MICROSECONDS, MAX_CPU_SHARES, MIN_CPU_SHARES

_MAX_WEIGHT = 10_000
_PAGE_FILE = re.compile(r"hugetlb\.([0-9]+[KMG]B)\.(?:limit_in_bytes|max)")


class CgroupWrite(msgspec.Struct, frozen=True):
    """One file of the pod's cgroup."""

    controller: str
    file: str
    text: str
    lifts: bool = False
    """It only takes a limit away: nothing is made for it."""


def parent_path(parent: str) -> str:
    """Docker's CgroupParent -> the path below the hierarchy's root: a slice's name unfolds, each "-" is a level."""
    if not parent.endswith(".slice") or "/" in parent:
        return parent.strip("/")
    levels = parent.removesuffix(".slice").split("-")
    return "/".join(f"{'-'.join(levels[: depth + 1])}.slice" for depth in range(len(levels)))


def cpu_weight(shares: int) -> int:
    """2..262144 of v1 -> 1..10000 of v2, as the kubelet converts."""
    return 1 + (shares - MIN_CPU_SHARES) * (_MAX_WEIGHT - 1) // (MAX_CPU_SHARES - MIN_CPU_SHARES)


def cgroup_writes(limits: PodLimits, *, unified: bool, page_files: Collection[str] = ()) -> list[CgroupWrite]:
    """In the order of writing. `page_files`: names of the hierarchy's own hugetlb limit files, one for each size: of
    those that the pod doesn't ask for it may have none."""
    common = [
        CgroupWrite("pids", "pids.max", str(limits.pids or "max"), not limits.pids),
        *(CgroupWrite("hugetlb", file, str(_pages(file, limits))) for file in sorted(page_files)),
    ]
    quota, memory = limits.cpu_quota, limits.memory
    if unified:
        most = f"{quota or 'max'} {CPU_PERIOD_MICROSECONDS}"
        weight = [CgroupWrite("cpu", "cpu.weight", str(cpu_weight(limits.cpu_shares)))] if limits.cpu_shares else []
        return [
            *weight,
            CgroupWrite("cpu", "cpu.max", most, not quota),
            CgroupWrite("memory", "memory.max", str(memory or "max"), not memory),
            *common,
        ]
    shares = [CgroupWrite("cpu", "cpu.shares", str(limits.cpu_shares))] if limits.cpu_shares else []
    period = [CgroupWrite("cpu", "cpu.cfs_period_us", str(CPU_PERIOD_MICROSECONDS))] if quota else []
    return [
        *shares,
        *period,
        CgroupWrite("cpu", "cpu.cfs_quota_us", str(quota or -1), not quota),
        CgroupWrite("memory", "memory.limit_in_bytes", str(memory or -1), not memory),
        *common,
    ]


def is_page_file(name: str) -> bool:
    return _PAGE_FILE.fullmatch(name) is not None


def _pages(file: str, limits: PodLimits) -> int:
    """`hugetlb.2MB.max` -> the bytes of size 2Mi."""
    match = _PAGE_FILE.fullmatch(file)
    assert match is not None
    size = value(match[1].replace("B", "i"))
    return sum(amount for name, amount in limits.huge_pages.items() if value(name) == size)
