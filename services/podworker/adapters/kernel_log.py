"""Whether the kernel killed something of a container for want of memory, by its own log.

The engine hears of it from containerd, which forgets it when the container's cgroup is gone before it looked: on a busy
machine an OOM kill then reads as a plain 137. The kernel writes its line before it kills, so it is there by the time
that the end is seen. Where /dev/kmsg can't be read (a container without it, kernel.dmesg_restrict) nothing is known,
and the engine's word stands.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

log = logging.getLogger("podbus.podworker.kernel_log")

KERNEL_LOG = Path("/dev/kmsg")
_RECORD_BYTES = 8192
"""The kernel's own bound of a record: a smaller buffer is refused."""


def was_oom_killed(container_id: str, path: Path = KERNEL_LOG) -> bool:
    """Reads the whole ring, some milliseconds: ask only for what ended by SIGKILL and nobody explains."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        log.debug("kernel log not read path=%s error=%s", path, error)
        return False
    try:
        return _told(descriptor, container_id.encode())
    finally:
        os.close(descriptor)


def _told(descriptor: int, container_id: bytes) -> bool:
    while True:
        try:
            record = os.read(descriptor, _RECORD_BYTES)
        except BrokenPipeError:
            continue  # overwritten before it was read: the next one is the oldest
        except OSError:
            return False  # EAGAIN: no more
        if not record:
            return False
        if is_oom_kill(record, container_id):
            return True


def is_oom_kill(record: bytes, container_id: bytes) -> bool:
    """The victim's cgroup is the container's own or one below it: `task_memcg=/kubepods/.../<id>`."""
    _, found, rest = record.partition(b"oom-kill:")
    if not found:
        return False
    _, found, victim = rest.partition(b",task_memcg=")
    return bool(found) and container_id in victim.partition(b",")[0]
