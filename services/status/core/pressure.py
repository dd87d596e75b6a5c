"""Which resources run out: evictionHard against what was observed."""

from __future__ import annotations

from collections.abc import Mapping

from services.status.core.model import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE, PRESSURES, Disk, Observation
from shared.kube.allocatable import threshold

HOLD_SECONDS = 300.0
"""kubelet 1.36: evictionPressureTransitionPeriod's default: a pressure ends this long after it was last seen."""

_OFF = ("0%", "100%")
_CONDITIONS = {
    "memory.available": MEMORY_PRESSURE,
    "nodefs.available": DISK_PRESSURE,
    "nodefs.inodesFree": DISK_PRESSURE,
    "imagefs.available": DISK_PRESSURE,
    "imagefs.inodesFree": DISK_PRESSURE,
    "pid.available": PID_PRESSURE,
}


def met_thresholds(eviction_hard: Mapping[str, str], seen: Observation) -> set[str]:
    """The signals below their threshold.

    kubelet 1.36: strictly below; "0%" and "100%" switch a threshold off; what wasn't observed is skipped.
    """
    observed = _signals(seen)
    met: set[str] = set()
    for signal, text in eviction_hard.items():
        found = observed.get(signal)
        if found is None or text in _OFF:
            continue
        available, capacity = found
        if available < threshold(text, capacity):
            met.add(signal)
    return met


def pressures(met: set[str]) -> set[str]:
    """Signals -> condition types."""
    return {_CONDITIONS[signal] for signal in met if signal in _CONDITIONS}


def hold(last_seen: Mapping[str, float], found: set[str], at: float) -> dict[str, float]:
    """The pressures that are so now, with when each was last seen: those found, and those of the last five
    minutes. `at`: seconds of a clock that never steps."""
    return {
        kind: at if kind in found else last_seen[kind]
        for kind in PRESSURES
        if kind in found or (kind in last_seen and at - last_seen[kind] < HOLD_SECONDS)
    }


def _signals(seen: Observation) -> dict[str, tuple[int, int]]:
    """Signal -> (available, capacity)."""
    found: dict[str, tuple[int, int]] = {}
    if seen.memory_available is not None and seen.memory_total is not None:
        found["memory.available"] = (seen.memory_available, seen.memory_total)
    if seen.pids_max is not None and seen.pids_running is not None:
        found["pid.available"] = (seen.pids_max - seen.pids_running, seen.pids_max)
    for name, disk in (("nodefs", seen.nodefs), ("imagefs", seen.imagefs)):
        if disk is not None:
            found.update(_disk_signals(name, disk))
    return found


def _disk_signals(name: str, disk: Disk) -> dict[str, tuple[int, int]]:
    found = {f"{name}.available": (disk.available, disk.capacity)}
    if disk.inodes > 0:
        found[f"{name}.inodesFree"] = (disk.inodes_free, disk.inodes)
    return found
