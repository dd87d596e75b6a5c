"""What pods have left on the node that no owner will remove any more: directories, log links, cgroups.

`<data>/pods/<uid>` goes last of a pod's leftovers, so it tells of all the others; what has no such directory is not
ours to remove: the log directories are shared with other agents.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from services.podworker.adapters.cgroup_parent import PodCgroups
from services.podworker.adapters.pod_files import PodFiles

Result = TypeVar("Result")

SETTLED_SECONDS = 60.0
"""A directory that was made or changed since is left alone: its pod may be starting."""


class NodeLeftovers:
    """Leftovers (services.podworker.ports). Blocking work runs in one thread of its own."""

    def __init__(
        self, data_dir: Path, files: PodFiles, cgroups: PodCgroups, now: Callable[[], float] = time.time
    ) -> None:
        self._pods = data_dir / "pods"
        self._files = files
        self._cgroups = cgroups
        self._now = now
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="leftovers")

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def uids(self) -> frozenset[str]:
        return await self._run(self._uids)

    async def remove(self, uid: str) -> bool:
        return await self._run(lambda: self._remove(uid))

    async def drop_dangling_links(self, uids: Iterable[str]) -> int:
        return await self._run(lambda: self._files.drop_dangling_links(frozenset(uids)))

    async def _run(self, call: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _uids(self) -> frozenset[str]:
        try:
            return frozenset(path.name for path in self._pods.iterdir() if self._is_settled(path))
        except FileNotFoundError:
            return frozenset()

    def _remove(self, uid: str) -> bool:
        """Looks once more: the pod may have come back meanwhile."""
        directory = self._pods / uid
        if not self._is_settled(directory):
            return False
        self._cgroups.remove(uid)
        self._files.remove_pod(uid)
        return not directory.exists()

    def _is_settled(self, directory: Path) -> bool:
        try:
            return directory.is_dir() and self._now() - directory.stat().st_mtime > SETTLED_SECONDS
        except FileNotFoundError:
            return False
