"""Walks over directories: what they hold on disk, as `du` counts it."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from services.stats.core.model import VolumeTarget

_PAUSE_EVERY = 2_000
"""Entries between pauses: a walk shares its thread's interpreter with the sampling."""
_PAUSE_SECONDS = 0.005
_MOST_ENTRIES = 5_000_000
_PLUGINS = {
    "empty-dir": True,
    "configmap": True,
    "downward-api": True,
    "secret": False,
    "projected": False,
}
"""Measured by a walk; True = kubelet counts it as ephemeral storage, unless it's in memory."""
_HOST_ROOT = "/proc/1/root"
"""For a reader in a container with the host's process ids."""


class DirectoryWalker:
    def __init__(self, data: Path) -> None:
        """`data`: the data directory; pods' volumes are at `<data>/pods/<uid>/volumes`."""
        self._pods = data / "pods"

    def size(self, path: str) -> tuple[int, int] | None:
        """Blocks in bytes (so holes don't count) and inodes, hard links once, without what is mounted below."""
        for root in (path, f"{_HOST_ROOT}{path}"):
            try:
                top = os.lstat(root)
            except OSError:
                continue
            return _walk(root, top)
        return None

    def volumes(self, uid: str) -> tuple[VolumeTarget, ...]:
        """As the worker laid them out: `volumes/kubernetes.io~<plugin>/<name>`."""
        root = self._pods / uid / "volumes"
        found: list[VolumeTarget] = []
        try:
            device = self._pods.stat().st_dev
            for plugin in sorted(root.iterdir()):
                is_local = _PLUGINS.get(plugin.name.removeprefix("kubernetes.io~"))
                if is_local is None:
                    continue
                for volume in sorted(plugin.iterdir()):
                    on_disk = volume.stat().st_dev == device
                    found.append(VolumeTarget(name=volume.name, path=str(volume), is_local=is_local and on_disk))
        except OSError:
            pass  # the pod goes while we look
        return tuple(found)


def _walk(root: str, top: os.stat_result) -> tuple[int, int]:
    used, inodes, entries = top.st_blocks * 512, 1, 0
    linked: set[int] = set()
    pending = [root] if stat.S_ISDIR(top.st_mode) else []
    while pending:
        directory = pending.pop()
        try:
            with os.scandir(directory) as listing:
                for entry in listing:
                    entries += 1
                    if entries % _PAUSE_EVERY == 0:
                        time.sleep(_PAUSE_SECONDS)
                    if entries > _MOST_ENTRIES:
                        return used, inodes
                    found = entry.stat(follow_symlinks=False)
                    if found.st_dev != top.st_dev:
                        continue
                    if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
                        if found.st_ino in linked:
                            continue
                        linked.add(found.st_ino)
                    used += found.st_blocks * 512
                    inodes += 1
                    if stat.S_ISDIR(found.st_mode):
                        pending.append(entry.path)
        except OSError:
            continue  # removed meanwhile
    return used, inodes
