"""Files that only the owner may read, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: Path, content: str | bytes) -> bool:
    """Put the content there with mode 0600, atomically and durably. False when it was there already."""
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.read_bytes() == data:
            path.chmod(0o600)
            return False
    except FileNotFoundError:
        pass
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise
    return True


def make_private_directory(path: Path, mode: int = 0o700) -> None:
    """Make it, with this mode whatever the umask is; one that is there gets at most this mode."""
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
    elif (now := path.stat().st_mode & 0o777) & ~mode:
        path.chmod(now & mode)
