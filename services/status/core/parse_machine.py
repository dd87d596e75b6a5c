"""The texts of /proc and /etc files -> facts. Pure; what a file doesn't say is None or ""."""

from __future__ import annotations

import shlex

import msgspec


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes."""

    total: int
    available: int
    swap_total: int


def parse_memory(meminfo: str) -> Memory | None:
    """/proc/meminfo; None when a line is missing.

    available: capacity - working set, and the working set is what isn't free without the inactive file pages. That is
    the kubelet's number, which evictions and the Summary use; the kernel's MemAvailable says more.
    """
    found: dict[str, int] = {}
    for line in meminfo.splitlines():
        key, _, rest = line.partition(":")
        if key in ("MemTotal", "MemFree", "Inactive(file)", "SwapTotal") and rest.split()[0].isdecimal():
            found[key] = int(rest.split()[0]) * 1024
    try:
        return Memory(
            total=found["MemTotal"],
            available=min(found["MemTotal"], found["MemFree"] + found["Inactive(file)"]),
            swap_total=found.get("SwapTotal", 0),
        )
    except KeyError:
        return None


def parse_tasks(pid_max: str, threads_max: str, loadavg: str) -> tuple[int, int] | None:
    """(most, running) tasks of the node. kubelet 1.36: the smaller of the two limits; the number behind the "/" of
    /proc/loadavg."""
    try:
        return min(int(pid_max), int(threads_max)), int(loadavg.split()[3].split("/")[1])
    except (IndexError, ValueError):
        return None


def parse_pretty_name(os_release: str) -> str:
    """PRETTY_NAME of os-release; "Linux" without one, as os-release(5) says."""
    for line in os_release.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "PRETTY_NAME":
            try:
                return "".join(shlex.split(value)) if value[:1] in "\"'" else value.strip()
            except ValueError:
                return value.strip()
    return "Linux"
