"""Whether the kernel killed something of a container for want of memory, by its own log.

The engine hears of it from containerd, which forgets it when the container's cgroup is gone before it looked: on a busy
machine an OOM kill then reads as a plain 137. The kernel writes its line before it kills, so it is there by the time
that the end is seen. Where the log can't be read nothing is known, and the engine's word stands.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from shared.kube.oom import parse_oom_kill
from shared.runtime.kernel_log import KERNEL_LOG, KernelLog


def was_oom_killed(container_id: str, path: Path = KERNEL_LOG) -> bool:
    """Reads the whole log: ask only for what ended by SIGKILL and nobody explains."""
    with closing(KernelLog(path)) as log:
        kills = map(parse_oom_kill, log.oom_records())
        return any(kill is not None and container_id in kill.containers for kill in kills)
