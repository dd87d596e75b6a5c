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
_UNLIMITED = -1


class PodCgroups:
    """`parent` is Docker's CgroupParent, `/kubepods/burstable/pod<uid>`. Where the tree can't be written (a
    worker in a container may have it read-only) the limits are left out, which is told once."""

    def __init__(self, root: Path = CGROUP_ROOT, cgroup_root: str = "/") -> None:
        self._root = root
        self._kubepods = f"{cgroup_root.strip('/')}/kubepods".lstrip("/")
        self._told = False

    def limit(self, parent: str, limits: PodLimits) -> None:
        """Give the pod's cgroup these limits, making it where there is none: before its sandbox, and before each
        container, since a container can't be given more CPU than its pod has. Blocks; raises nothing."""
        if not parent.startswith("/"):
            return
        quota = {"cpu.cfs_period_us": CPU_PERIOD_MICROSECONDS} if limits.cpu_quota else {}
        written = {
            "cpu": {"cpu.shares": limits.cpu_shares, **quota, "cpu.cfs_quota_us": limits.cpu_quota or _UNLIMITED},
            "memory": {"memory.limit_in_bytes": limits.memory or _UNLIMITED},
        }
        for controller, files in written.items():
            directory = self._root / controller / parent.lstrip("/")
            wanted = any(value > 0 for value in files.values())
            if not (self._root / controller).is_dir() or not (wanted or directory.is_dir()):
                continue
            for name, value in files.items():
                if value > 0 or (value < 0 and (directory / name).exists()):
                    self._write(directory / name, value)

    def _write(self, file: Path, value: int) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(str(value), encoding="ascii")
        except OSError as error:
            # A limit below what the pod's running containers have is refused until they have ended.
            if error.errno in (errno.EINVAL, errno.EBUSY):
                _log.info("pod limit stays for now file=%s value=%d error=%s", file, value, error.strerror)
            else:
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
