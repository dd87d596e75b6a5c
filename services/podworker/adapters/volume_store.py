"""A pod's volumes on the node: made, refreshed, bound by sub path, taken down. Blocks in threads of its own."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from services.podworker.adapters.atomic_files import DIRECTORY_GROUP, READ_ONLY_GROUP, is_written, write_files
from services.podworker.adapters.host_paths import HostPathRefused, HostPaths, own_root
from services.podworker.adapters.mounting import (
    RESOLVE_BENEATH,
    bind_open_file,
    make_directories,
    mount_tmpfs,
    mounted_type,
    open_at,
    opened,
    unmount,
    unmount_below,
)
from services.podworker.core.config_objects import ConfigError
from services.podworker.core.container_config import Mount
from services.podworker.core.mounts import MountRequest
from services.podworker.core.volumes import DirectoryVolume, FilesVolume, HostVolume, VolumeFault, VolumeSetup

Result = TypeVar("Result")

THREADS = 4
MAX_ENV_FILE_BYTES = 1 << 20
_OWN_DIRECTORY_MODE = 0o750
_OUTSIDE = (errno.EXDEV, errno.ELOOP)
_WRITABLE_GROUP = 0o660


class VolumeStore:
    """Volumes (services.podworker.ports) below `<data>/pods/<uid>`."""

    def __init__(self, data_dir: Path, host_root: Callable[[], Path] = own_root) -> None:
        self._pods = data_dir / "pods"
        self._host = HostPaths(host_root)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="volumes")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def set_up(self, setups: Sequence[VolumeSetup]) -> list[VolumeFault]:
        return await self._run(lambda: [fault for setup in setups if (fault := self._set_up(setup)) is not None])

    async def are_written(self, paths: Sequence[str]) -> bool:
        return await self._run(lambda: all(is_written(Path(path)) for path in paths))

    async def bind(self, container: str, requests: Sequence[MountRequest]) -> list[Mount]:
        return await self._run(lambda: [self._bound(container, request) for request in requests])

    async def read_file(self, root: str, path: str) -> str | None:
        return await self._run(lambda: _read_file(root, path))

    async def tear_down(self, uid: str) -> None:
        await self._run(lambda: self._tear_down(uid))

    async def _run(self, call: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    # -- setting up -------------------------------------------------------------------------------------------

    def _set_up(self, setup: VolumeSetup) -> VolumeFault | None:
        try:
            match setup:
                case DirectoryVolume():
                    self._directory(setup)
                case HostVolume():
                    self._host.set_up(setup)
                case FilesVolume():
                    self._files(setup)
        except (HostPathRefused, OSError) as error:
            return VolumeFault(setup.name, str(error))
        return None

    def _directory(self, volume: DirectoryVolume) -> None:
        path = Path(volume.path)
        _make_own(path.parent)
        if volume.memory:
            self._tmpfs(path, volume.size, volume.group, _WRITABLE_GROUP)
        elif not path.is_dir():
            # Complete before it has its name: a worker that dies in between leaves nothing half-made.
            fresh = path.with_name(f".{path.name}.new")
            fresh.mkdir(exist_ok=True)
            fresh.chmod(0o777)
            _give_to_group(fresh, volume.group, _WRITABLE_GROUP)
            fresh.rename(path)

    def _files(self, volume: FilesVolume) -> None:
        path = Path(volume.path)
        _make_own(path.parent)
        if volume.memory:
            self._tmpfs(path, volume.size, volume.group, READ_ONLY_GROUP)
        elif not path.is_dir():
            path.mkdir()
            path.chmod(0o777)
            _give_to_group(path, volume.group, READ_ONLY_GROUP)
        for place in volume.mount_points:
            (path / place).mkdir(mode=0o755, parents=True, exist_ok=True)
        write_files(path, volume.files, volume.group)

    def _tmpfs(self, path: Path, size: int, group: int | None, mask: int) -> None:
        """Raises OSError where there is anything but a tmpfs afterwards."""
        path.mkdir(exist_ok=True)
        if not mounted_type(path):
            mount_tmpfs(path, size)
            _give_to_group(path, group, mask)
        if mounted_type(path) != "tmpfs":
            raise OSError(errno.EINVAL, "not in memory", str(path))

    # -- binding ----------------------------------------------------------------------------------------------

    def _bound(self, container: str, request: MountRequest) -> Mount:
        source = request.root
        if request.sub_path:
            try:
                source = self._sub_path(request)
            except OSError as error:
                why = "it leads out of the volume" if error.errno in _OUTSIDE else error.strerror or str(error)
                raise ConfigError(
                    f'failed to prepare subPath for volumeMount "{request.volume}" of container "{container}":'
                    f" {request.sub_path}: {why}"
                ) from error
        return Mount(source=source, target=request.target, read_only=request.read_only, propagation=request.propagation)

    def _sub_path(self, request: MountRequest) -> str:
        """Found, or made, and bound without ever following a link out of the volume."""
        root = (
            self._host.open(request.root)
            if request.on_host
            else os.open(request.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        )
        with opened(root):
            try:
                found = open_at(root, request.sub_path, os.O_PATH, RESOLVE_BENEATH)
            except FileNotFoundError:
                if not request.may_create:
                    raise ConfigError(request.missing) from None
                mode = stat.S_IMODE(os.fstat(root).st_mode)
                found = make_directories(root, request.sub_path, mode, RESOLVE_BENEATH)
        with opened(found):
            if request.on_host and self._host.is_elsewhere:
                # What is in another mount namespace can't be bound from here.
                return str(Path(f"/proc/self/fd/{found}").readlink())
            target = Path(request.bind_path)
            _make_own(target.parent)
            if mounted_type(target):
                unmount(str(target))  # of the container's last instance, which had its own copy
            if stat.S_ISDIR(os.fstat(found).st_mode):
                target.unlink(missing_ok=True) if not target.is_dir() else None
                target.mkdir(exist_ok=True)
            else:
                if target.is_dir():
                    target.rmdir()
                target.touch()
            bind_open_file(found, target)
            return str(target)

    # -- taking down ------------------------------------------------------------------------------------------

    def _tear_down(self, uid: str) -> None:
        directory = self._pods / uid
        if uid in ("", ".", "..") or "/" in uid:
            return
        for part in ("volume-subpaths", "volumes"):
            unmount_below(directory / part)
            shutil.rmtree(directory / part, ignore_errors=True)


def _make_own(directory: Path) -> None:
    """`<data>/pods/<uid>/...`: nobody but root looks in."""
    missing = [directory, *directory.parents]
    for one in reversed([path for path in missing if not path.is_dir()]):
        one.mkdir(exist_ok=True)
        one.chmod(_OWN_DIRECTORY_MODE)


def _give_to_group(directory: Path, group: int | None, mask: int) -> None:
    if group is not None:
        os.chown(directory, -1, group)
        directory.chmod(stat.S_IMODE(directory.stat().st_mode) | mask | DIRECTORY_GROUP)


def _read_file(root: str, path: str) -> str | None:
    """A file that a container wrote: nothing of it is trusted. None when it isn't there. Raises ConfigError."""
    try:
        with opened(os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as directory:
            handle = open_at(directory, path, os.O_RDONLY | os.O_NONBLOCK, RESOLVE_BENEATH)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = "it leads out of the volume" if error.errno in _OUTSIDE else error.strerror
        raise ConfigError(f"couldn't read file {path}: {why}") from error
    with opened(handle):
        seen = os.fstat(handle)
        if not stat.S_ISREG(seen.st_mode):
            raise ConfigError(f"couldn't read file {path}: not a plain file")
        if seen.st_size > MAX_ENV_FILE_BYTES:
            raise ConfigError(f"couldn't read file {path}: larger than {MAX_ENV_FILE_BYTES} bytes")
        return os.read(handle, MAX_ENV_FILE_BYTES).decode("utf-8", "replace")
