"""How much memory a running container uses, from its cgroup: a limit below that would kill it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from services.podworker.ports import RuntimeRefused

if TYPE_CHECKING:
    from docker import APIClient

CGROUP_ROOT = Path("/sys/fs/cgroup")


def refuse_below_usage(client: APIClient, container_id: str, limit: int) -> None:
    """Raises RuntimeRefused("ResizeError") as the kubelet does; what can't be read isn't refused here."""
    if not limit:
        return
    pid = int(client.inspect_container(container_id)["State"].get("Pid") or 0)
    used = memory_in_use(pid) if pid else None
    if used is not None and used > limit:
        text = f"attempting to set pod memory limit ({limit}) below current usage ({used})"
        raise RuntimeRefused("ResizeError", text)


def memory_in_use(pid: int, root: Path = CGROUP_ROOT, proc: Path = Path("/proc")) -> int | None:
    """Bytes that can't simply be given back: without the cache of files."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
        for line in lines:
            _, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                return _used(root / "memory" / path.lstrip("/"), "memory.usage_in_bytes", "total_inactive_file")
        for line in lines:
            _, controllers, path = line.split(":", 2)
            if not controllers:
                return _used(root / path.lstrip("/"), "memory.current", "inactive_file")
    except (OSError, ValueError):
        return None
    return None


def _used(directory: Path, file: str, cache: str) -> int:
    used = int((directory / file).read_text())
    stat = dict(line.split(" ", 1) for line in (directory / "memory.stat").read_text().splitlines())
    return used - int(stat.get(cache, 0))
