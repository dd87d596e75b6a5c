"""The kernel's own log, read as far as it goes and never waited for."""

from __future__ import annotations

import os
from pathlib import Path

KERNEL_LOG = Path("/dev/kmsg")
_RECORD_BYTES = 8192
"""The kernel's own bound of a record: a smaller buffer is refused."""
_OOM = b"oom-kill:"


class KernelLog:
    """Where /dev/kmsg can't be read (a container without it, or without CAP_SYSLOG) there is never a record."""

    def __init__(self, path: Path = KERNEL_LOG) -> None:
        self.trouble = ""
        """Why it can't be read; "" = it can."""
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.trouble, self._descriptor = str(error), -1

    def oom_records(self) -> list[bytes]:
        """Those of kills for want of memory since the last call; at first all that the kernel still has: some
        milliseconds."""
        found: list[bytes] = []
        while self._descriptor >= 0:
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BrokenPipeError:
                continue  # overwritten before it was read: the next one is the oldest
            except OSError:
                break  # EAGAIN: no more
            if not record:
                break
            if _OOM in record:
                found.append(record)
        return found

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
