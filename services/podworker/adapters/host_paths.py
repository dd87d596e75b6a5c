"""hostPath volumes: the types' checks, and making what may be made. Nothing of the host is ever removed or changed."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from services.podworker.adapters.mounting import RESOLVE_IN_ROOT, make_directories, open_at, opened
from services.podworker.core.volumes import HostVolume

_CHECKS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "directory"),
    "File": (stat.S_ISREG, "file"),
    "FileOrCreate": (stat.S_ISREG, "file"),
    "Socket": (stat.S_ISSOCK, "socket"),
    "CharDevice": (stat.S_ISCHR, "character device"),
    "BlockDevice": (stat.S_ISBLK, "block device"),
}


class HostPathRefused(Exception):
    """The kubelet's words."""


def own_root() -> Path:
    """Where worker and engine see the same files."""
    return Path("/")


def engines_root() -> Path:
    """The host's file system as the engine sees it, from within a container with `pid: host` and SYS_PTRACE."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if comm.read_text() == "dockerd\n":
                return comm.parent / "root"
    return Path("/proc/1/root")


class HostPaths:
    """`root` tells where the host's file system is seen; asked each time, for the engine may have been restarted."""

    def __init__(self, root: Callable[[], Path]) -> None:
        self._root = root

    @property
    def is_elsewhere(self) -> bool:
        """The host's paths aren't this process's own."""
        return self._root is not own_root

    def set_up(self, volume: HostVolume) -> None:
        """Raises HostPathRefused, OSError."""
        with opened(self.open_root()) as root:
            path = volume.path.lstrip("/")
            mode = self._mode(root, path)
            if mode is None and volume.type in ("", "DirectoryOrCreate"):
                # "" as well: the kubelet leaves it to the engine, which makes a directory.
                os.close(make_directories(root, path, 0o755, RESOLVE_IN_ROOT))
                return
            if mode is None and volume.type == "FileOrCreate":
                self._make_file(root, volume.path)
                return
            if volume.type:
                fits, what = _CHECKS[volume.type]
                if mode is None or not fits(mode):
                    raise HostPathRefused(f"hostPath type check failed: {volume.path} is not a {what}")

    def open_root(self) -> int:
        """A handle on the host's root directory."""
        return os.open(self._root(), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def open(self, path: str) -> int:
        """A handle on a path of the host, symlinks followed. Raises OSError."""
        with opened(self.open_root()) as root:
            return open_at(root, path.lstrip("/"), os.O_PATH, RESOLVE_IN_ROOT)

    def _mode(self, root: int, path: str) -> int | None:
        try:
            handle = open_at(root, path, os.O_PATH, RESOLVE_IN_ROOT)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with opened(handle):
            return os.fstat(handle).st_mode

    def _make_file(self, root: int, path: str) -> None:
        """kubelet: the parent must be there."""
        place = PurePosixPath(path)
        try:
            parent = open_at(root, str(place.parent).lstrip("/"), os.O_PATH | os.O_DIRECTORY, RESOLVE_IN_ROOT)
        except OSError as error:
            raise HostPathRefused(f"hostPath type check failed: {path} can't be made: {error.strerror}") from error
        with opened(parent):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with opened(os.open(place.name, flags, 0o644, dir_fd=parent)) as made:
                os.fchmod(made, 0o644)
