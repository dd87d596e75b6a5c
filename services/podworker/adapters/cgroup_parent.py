"""The cgroup of a whole pod: limits over all its containers, and its removal when the pod has ended.

The engine makes the directories itself when a container names them as its parent, gives them no limits, and
leaves them behind. cgroup v1 with the cgroupfs driver; with systemd the slices are systemd's.
"""

from __future__ import annotations

import errno
import logging
from pathlib import Path

from services.podworker.core.pod_limits import PodLimits
from services.podworker.core.resources import CPU_PERIOD_MICROSECONDS

_log = logging.getLogger("podbus.podworker.cgroup_parent")

CGROUP_ROOT = Path("/sys/fs/cgroup")
QOS_TIERS = ("", "besteffort", "burstable")


class PodCgroups:
    """`parent` is Docker's CgroupParent, `/kubepods/burstable/pod<uid>`. Where the tree can't be written (a
    worker in a container may have it read-only) the limits are left out, which is told once."""

    def __init__(self, root: Path = CGROUP_ROOT, cgroup_root: str = "/") -> None:
        self._root = root
        self._kubepods = f"{cgroup_root.strip('/')}/kubepods".lstrip("/")
        self._told = False

    def create(self, parent: str, limits: PodLimits) -> None:
        """The pod's cgroup with its limits, before its first container. 0 = none. Blocks; raises nothing."""
        if not parent.startswith("/"):
            return
        written = {
            "cpu": {
                "cpu.shares": limits.cpu_shares,
                "cpu.cfs_period_us": CPU_PERIOD_MICROSECONDS if limits.cpu_quota else 0,
                "cpu.cfs_quota_us": limits.cpu_quota,
            },
            "memory": {"memory.limit_in_bytes": limits.memory},
        }
        try:
            for controller, files in written.items():
                if not any(files.values()) or not (self._root / controller).is_dir():
                    continue
                directory = self._root / controller / parent.lstrip("/")
                directory.mkdir(parents=True, exist_ok=True)
                for name, value in files.items():
                    if value:
                        (directory / name).write_text(str(value), encoding="ascii")
        except OSError as error:
            self._tell(f"pod limits can't be set: {error}")

    def remove(self, uid: str) -> None:
        """The pod's cgroups in every controller, bottom up. Blocks; one that still has processes stays."""
        if not uid or "/" in uid or not self._root.is_dir():
            return
        for controller in self._root.iterdir():
            if controller.is_symlink() or not controller.is_dir():
                continue
            for tier in QOS_TIERS:
                directory = controller / self._kubepods / tier / f"pod{uid}"
                if directory.is_dir():
                    self._remove_tree(directory)

    def _remove_tree(self, directory: Path) -> None:
        """rmdir only: the files of a cgroup are the kernel's and go with their directory."""
        try:
            for child in list(directory.iterdir()):
                if child.is_dir() and not child.is_symlink():
                    self._remove_tree(child)
            directory.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno == errno.EBUSY:
                _log.warning("cgroup=%s still has processes", directory)
            else:
                self._tell(f"the cgroup of an ended pod stays: {error}")

    def _tell(self, problem: str) -> None:
        if not self._told:
            _log.warning("%s (told once)", problem)
        self._told = True
