"""Small files of the machine that the engine runs on, from wherever this process sees them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from services.podworker.adapters.host_paths import own_root
from services.podworker.adapters.mounting import RESOLVE_IN_ROOT, open_at, opened

_MAX_BYTES = 1 << 20


class HostFiles:
    """`root` tells where the host's file system is seen; asked each time, for the engine may have been restarted."""

    def __init__(self, root: Callable[[], Path] = own_root) -> None:
        self._root = root

    def read_text(self, path: str) -> str:
        """The beginning of a very long one. Raises OSError."""
        handle = self._open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(handle, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_BYTES)

    def overwrite(self, path: str, content: bytes) -> None:
        """In place; the file must be there. Raises OSError."""
        handle = self._open(path, os.O_WRONLY | os.O_TRUNC)
        with os.fdopen(handle, "wb") as file:
            file.write(content)

    def _open(self, path: str, flags: int) -> int:
        with opened(os.open(self._root(), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as root:
            return open_at(root, path.lstrip("/"), flags, RESOLVE_IN_ROOT)
