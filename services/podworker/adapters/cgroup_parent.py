"""The cgroup of a whole pod: limits over all its containers, and its removal when the pod has ended.

The engine makes the directories itself when a container names them as its parent, gives them no limits, and leaves them
behind. With the systemd driver the slices are systemd's to make and to remove: they are given limits once they are
there, which is before the pod's first container.
"""

from __future__ import annotations

import errno
import logging
from pathlib import Path

from services.podworker.core.cgroup_files import CgroupWrite, cgroup_writes, is_page_file, parent_path
from services.podworker.core.pod_limits import PodLimits

_log = logging.getLogger("podbus.podworker.cgroup_parent")

CGROUP_ROOT = Path("/sys/fs/cgroup")
QOS_TIERS = ("", "besteffort", "burstable")


class PodCgroups:
    """`parent` is Docker's CgroupParent, `/kubepods/burstable/pod<uid>` or `kubepods-burstable-pod<uid>.slice`. Where
    the tree can't be written (a worker in a container may have it read-only) the limits are left out, which is told
    once."""

    def __init__(self, root: Path = CGROUP_ROOT, cgroup_root: str = "/") -> None:
        self._root = root
        self._kubepods = f"{cgroup_root.strip('/')}/kubepods".lstrip("/")
        self._told = False

    @property
    def is_unified(self) -> bool:
        """cgroup v2."""
        return (self._root / "cgroup.controllers").is_file()

    def limit(self, parent: str, limits: PodLimits) -> None:
        """Give the pod's cgroup these limits, making it where there is none: before its sandbox, and before each
        container, since a container can't be given more CPU than its pod has. Blocks; raises nothing."""
        if not parent:
            return
        unified = self.is_unified
        is_slice = not parent.startswith("/")
        for write in cgroup_writes(limits, unified=unified, page_files=self._page_files(unified)):
            hierarchy = self._root if unified else self._root / write.controller
            directory = hierarchy / parent_path(parent)
            if not hierarchy.is_dir() or (is_slice and not directory.is_dir()):
                continue
            if not write.lifts or (directory / write.file).exists():
                self._write(directory, write, hierarchy if unified else None)

    def _page_files(self, unified: bool) -> list[str]:
        """Of the first level: the root of a hierarchy has no limits. Without one there are no pages to limit."""
        hierarchy = self._root if unified else self._root / "hugetlb"
        if not hierarchy.is_dir():
            return []
        first = next((child for child in hierarchy.iterdir() if child.is_dir()), None)
        return [file.name for file in first.iterdir() if is_page_file(file.name)] if first is not None else []

    def _write(self, directory: Path, write: CgroupWrite, hierarchy: Path | None) -> None:
        file = directory / write.file
        try:
            if not directory.is_dir():
                directory.mkdir(parents=True, exist_ok=True)
            if hierarchy is not None and not file.exists():
                self._delegate(hierarchy, directory, write.controller)
            file.write_text(write.text, encoding="ascii")
        except OSError as error:
            # A limit below what the pod's running containers have is refused until they have ended.
            if error.errno in (errno.EINVAL, errno.EBUSY):
                _log.info("pod limit stays for now file=%s value=%s error=%s", file, write.text, error.strerror)
            else:
                self._tell(f"pod limits can't be set: {error}")

    def _delegate(self, hierarchy: Path, directory: Path, controller: str) -> None:
        """v2: a controller must be handed down from level to level."""
        for level in reversed([*directory.parents]):
            if level == hierarchy or hierarchy in level.parents:
                (level / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")

    def remove(self, uid: str) -> None:
        """The pod's cgroups in every controller, bottom up. Blocks; one that still has processes stays."""
        if not uid or "/" in uid or not self._root.is_dir():
            return
        hierarchies = [self._root] if self.is_unified else list(self._root.iterdir())
        for controller in hierarchies:
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
