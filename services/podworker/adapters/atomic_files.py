"""All files of a volume at once: a reader sees the old set or the new one, never a mixture.

The layout is the kubelet's: a directory `..<time>.<random>` with the files, a link `..data` to it, and for each
name at the top a link to `..data/<name>`. A change makes a new directory and renames a new `..data` over the old.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from services.podworker.core.volumes import ProjectedFile

DATA = "..data"
_NEW_DATA = "..data_tmp"
_DIRECTORY_MODE = 0o755
READ_ONLY_GROUP = 0o440
"""Added for fsGroup to what containers only read."""
DIRECTORY_GROUP = stat.S_ISGID | 0o110


def write_files(root: Path, files: Sequence[ProjectedFile], group: int | None) -> bool:
    """Bring the volume there; True when something was written. Raises OSError; then the old set stays."""
    current = _current(root)
    if current is not None and _holds(root / current, files, group):
        _link_names(root, files)
        return False
    fresh = Path(tempfile.mkdtemp(prefix=time.strftime("..%Y_%m_%d_%H_%M_%S."), dir=root))
    try:
        _fill(fresh, files, group)
        link = root / _NEW_DATA
        link.unlink(missing_ok=True)
        link.symlink_to(fresh.name)
        link.replace(root / DATA)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    _link_names(root, files)
    for entry in list(root.iterdir()):  # the former set, and what a worker left that died at it
        if entry.name.startswith("..") and entry.name not in (DATA, fresh.name) and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
    return True


def is_written(root: Path) -> bool:
    """Whether a complete set is there."""
    return _current(root) is not None


def _current(root: Path) -> str | None:
    try:
        name = str((root / DATA).readlink())
    except OSError:
        return None
    return name if "/" not in name and (root / name).is_dir() else None


def _fill(directory: Path, files: Sequence[ProjectedFile], group: int | None) -> None:
    _own(directory, _DIRECTORY_MODE, group)
    for file in files:
        parent = directory
        for part in PurePosixPath(file.path).parts[:-1]:
            parent = parent / part
            if not parent.is_dir():
                parent.mkdir()
                _own(parent, _DIRECTORY_MODE, group)
        target = directory / file.path
        with target.open("xb") as out:
            out.write(file.content)
        if group is not None:
            os.chown(target, -1, group)
        target.chmod(_file_mode(file, group))


def _own(directory: Path, mode: int, group: int | None) -> None:
    if group is not None:
        os.chown(directory, -1, group)
        mode |= READ_ONLY_GROUP | DIRECTORY_GROUP
    directory.chmod(mode)


def _file_mode(file: ProjectedFile, group: int | None) -> int:
    return file.mode if group is None else file.mode | READ_ONLY_GROUP


def _holds(directory: Path, files: Sequence[ProjectedFile], group: int | None) -> bool:
    there = {str(p.relative_to(directory)): p for p in directory.rglob("*") if not p.is_dir()}
    if there.keys() != {file.path for file in files}:
        return False
    for file in files:
        path = there[file.path]
        seen = path.stat()
        if stat.S_IMODE(seen.st_mode) != _file_mode(file, group) or path.read_bytes() != file.content:
            return False
        if group is not None and seen.st_gid != group:
            return False
    return True


def _link_names(root: Path, files: Sequence[ProjectedFile]) -> None:
    names = {PurePosixPath(file.path).parts[0] for file in files}
    for name in names:
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"{DATA}/{name}")
    for entry in list(root.iterdir()):
        if entry.name not in names and entry.is_symlink() and str(entry.readlink()).startswith(f"{DATA}/"):
            entry.unlink()
