"""mount(2), umount2(2), openat2(2) and the mount table: what Python has no calls for. Calls block."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

MS_BIND = 4096
_MNT_DETACH = 2
_UMOUNT_NOFOLLOW = 8
_MOST_STACKED = 20
"""Mounts at one path, of which each pass takes one."""
_SYS_OPENAT2 = 437
"""The same number on every architecture."""
RESOLVE_BENEATH = 0x08 | 0x02
"""Nothing leads out of the directory, no symlink and no `..`; no magic links of /proc."""
RESOLVE_IN_ROOT = 0x10 | 0x02
"""The directory is taken for the root of absolute symlinks and of `..`."""

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def mount_tmpfs(path: Path, size: int) -> None:
    """Never swapped out where the kernel (6.4) knows how. `size` in bytes, 0 = its default. Raises OSError."""
    options = f"size={size}" if size else ""
    try:
        _mount("tmpfs", str(path), "tmpfs", 0, ",".join(filter(None, (options, "noswap"))))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        _mount("tmpfs", str(path), "tmpfs", 0, options)


def bind_open_file(handle: int, target: Path) -> None:
    """Bind what is open, whatever its path means by now. Raises OSError."""
    _mount(f"/proc/self/fd/{handle}", str(target), "", MS_BIND, "")


def unmount(path: str) -> None:
    """At once, also while somebody still looks in. Not mounted is success. Raises OSError."""
    if _libc.umount2(os.fsencode(path), _MNT_DETACH | _UMOUNT_NOFOLLOW) != 0:
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOENT):
            raise OSError(code, os.strerror(code), path)


def mounts_below(directory: Path) -> dict[str, str]:
    """Mount point -> file system type, at or below the directory; of stacked ones the topmost. Without symlinks, as the
    kernel tells them."""
    root = os.path.realpath(directory)
    found: dict[str, str] = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        point = _unescaped(before.split(" ", 5)[4])
        if point == root or point.startswith(root + "/"):
            found[point] = after.split(" ", 1)[0]
    return found


def mounted_type(path: Path) -> str:
    """The type of the file system that is mounted at this very path; "" = none is."""
    return mounts_below(path).get(os.path.realpath(path), "")


def unmount_below(directory: Path) -> None:
    """Everything that is mounted at or below the directory, the deepest first. Raises OSError."""
    for _ in range(_MOST_STACKED):
        points = mounts_below(directory)
        for point in sorted(points, key=len, reverse=True):
            unmount(point)
        if not points:
            return
    raise OSError(errno.EBUSY, "still mounted", str(directory))


def open_at(root: int, path: str, flags: int, resolve: int) -> int:
    """A handle on a path below an open directory. Raises OSError: EXDEV or ELOOP where it would lead out."""
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    handle: int = _libc.syscall(_SYS_OPENAT2, root, os.fsencode(path or "."), ctypes.byref(how), ctypes.sizeof(how))
    if handle < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return handle


def make_directories(root: int, path: str, mode: int, resolve: int) -> int:
    """A handle on the directory, made with its missing parents, each with exactly that mode. Raises OSError."""
    parts = PurePosixPath(path).parts
    handle = open_at(root, "", os.O_PATH | os.O_DIRECTORY, resolve)
    for count in range(1, len(parts) + 1):
        parent = handle
        try:
            handle = _made(root, parent, parts[:count], mode, resolve)
        finally:
            os.close(parent)
    return handle


def _made(root: int, parent: int, parts: tuple[str, ...], mode: int, resolve: int) -> int:
    so_far = "/".join(parts)
    with contextlib.suppress(FileNotFoundError):
        return open_at(root, so_far, os.O_PATH | os.O_DIRECTORY, resolve)
    with contextlib.suppress(FileExistsError):
        os.mkdir(parts[-1], mode & 0o777, dir_fd=parent)
        made = os.open(parts[-1], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            # Whatever the umask; the parent's setgid bit was inherited.
            os.fchmod(made, mode & 0o777 | stat.S_IMODE(os.fstat(made).st_mode) & stat.S_ISGID)
        finally:
            os.close(made)
    return open_at(root, so_far, os.O_PATH | os.O_DIRECTORY, resolve)


@contextlib.contextmanager
def opened(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        os.close(handle)


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    texts = [os.fsencode(text) for text in (source, target, kind)]
    if _libc.mount(*texts, ctypes.c_ulong(flags), os.fsencode(options)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mounting {kind or source}: {os.strerror(code)}", target)


def _unescaped(text: str) -> str:
    for escaped, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escaped, char)
    return text
