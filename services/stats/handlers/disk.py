"""When which directory is walked: each once a minute, one after the other, in a thread; never for more than a
fraction of the time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from services.stats.core.model import (
    DirectorySize,
    DiskShare,
    FilesystemUsage,
    PodTarget,
    Targets,
    VolumeShare,
    VolumeTarget,
)
from services.stats.ports import Directories, Filesystems, Processes
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.stats.disk")

EVERY_SECONDS = 60.0
"""cAdvisor: the period of its disk walks."""
LONGEST_SECONDS = 20 * EVERY_SECONDS
"""cAdvisor: how far the period grows with what fails or takes long."""
RETRY_SECONDS = 1.0
"""After the first walk that failed: a container that just started may have no directory yet, or the engine's root
isn't known yet."""
SHARE = 0.02
"""Of the time, at most, that one directory is being walked."""
_USAGE_SECONDS = 5.0
BATCH = 20
"""Walks between two looks at what is due."""


@dataclass
class _Walk:
    path: Callable[[], str | None]
    due: float
    period: float = EVERY_SECONDS
    retry: float = RETRY_SECONDS
    size: DirectorySize | None = None


@dataclass
class _PodDisk:
    due: float
    volumes: tuple[VolumeTarget, ...] = ()
    walks: dict[str, _Walk] = field(default_factory=dict)


class Disk:
    """Sizes of writable layers, logs and volumes, at most a minute old; a directory that wasn't walked yet has none."""

    def __init__(self, directories: Directories, processes: Processes, filesystems: Filesystems, clock: Clock) -> None:
        self._directories = directories
        self._processes = processes
        self._filesystems = filesystems
        self._clock = clock
        self._root_dir = ""
        self._walks: dict[str, _Walk] = {}
        self._pods: dict[str, _PodDisk] = {}
        self._changed = asyncio.Event()
        self._usages: dict[str, tuple[float, FilesystemUsage | None]] = {}

    def set_targets(self, targets: Targets) -> None:
        """New containers are walked at once; what ended is forgotten."""
        self._root_dir = targets.images.root_dir if targets.images is not None else ""
        now = self._clock.boot_seconds()
        wanted: dict[str, _Walk] = {}
        for pod in targets.pods:
            for key, path in self._paths(pod):
                wanted[key] = self._walks.get(key) or _Walk(path, now)
        self._walks = wanted
        self._pods = {pod.uid: self._pods.get(pod.uid) or _PodDisk(now) for pod in targets.pods}
        self._usages.clear()
        self._changed.set()

    def rootfs(self, container_id: str) -> DiskShare | None:
        return self._share(self._walks.get(f"rootfs {container_id}"), self._root_dir)

    def logs(self, container_id: str) -> DiskShare | None:
        return self._share(self._walks.get(f"logs {container_id}"), self._root_dir)

    def volumes(self, uid: str) -> tuple[VolumeShare, ...]:
        """Of a pod, those that were walked."""
        pod = self._pods.get(uid)
        if pod is None:
            return ()
        shares = ((one, self._share(pod.walks.get(one.path), one.path)) for one in pod.volumes)
        return tuple(VolumeShare(target=one, share=share) for one, share in shares if share is not None)

    async def run(self) -> None:
        """A guarded task."""
        while True:
            self._changed.clear()
            due = self._due()
            if due:
                await asyncio.to_thread(self.walk, due[:BATCH])
                continue
            try:
                await asyncio.wait_for(self._changed.wait(), self._until_due())
            except TimeoutError:
                continue

    def walk_due(self) -> None:
        """Everything that is due, now and here."""
        while due := self._due():
            self.walk(due)

    def walk(self, walks: Iterable[_Walk]) -> None:
        for walk in walks:
            began = self._clock.boot_seconds()
            path = walk.path()
            found = self._directories.size(path) if path else None
            took = self._clock.boot_seconds() - began
            if found is None:
                walk.period, walk.retry = walk.retry, min(LONGEST_SECONDS, walk.retry * 2)
                log.debug("directory can't be walked path=%s next_in=%.0f", path, walk.period)
            else:
                walk.period, walk.retry = min(LONGEST_SECONDS, max(EVERY_SECONDS, took / SHARE)), RETRY_SECONDS
                walk.size = DirectorySize(at=self._clock.now(), used_bytes=found[0], inodes=found[1])
            walk.due = self._clock.boot_seconds() + walk.period

    def _until_due(self) -> float:
        """Seconds that `run` may sleep."""
        next_due = min((walk.due for walk in self._all()), default=float("inf"))
        return min(EVERY_SECONDS / 6, max(RETRY_SECONDS, next_due - self._clock.boot_seconds()))

    def _all(self) -> Iterable[_Walk]:
        yield from self._walks.values()
        for pod in self._pods.values():
            yield from pod.walks.values()

    def _due(self) -> list[_Walk]:
        now = self._clock.boot_seconds()
        for uid, pod in self._pods.items():
            if pod.due <= now:
                pod.due = now + EVERY_SECONDS
                pod.volumes = self._directories.volumes(uid)
                pod.walks = {one.path: pod.walks.get(one.path) or _fixed(one.path, now) for one in pod.volumes}
        return sorted((walk for walk in self._all() if walk.due <= now), key=lambda walk: walk.due)

    def _paths(self, pod: PodTarget) -> Iterable[tuple[str, Callable[[], str | None]]]:
        ids = [(one.id, one.pid) for one in pod.containers]
        if pod.sandbox_id:
            yield f"logs {pod.sandbox_id}", self._log_path(pod.sandbox_id)
        for id_, pid in ids:
            yield f"rootfs {id_}", self._upper_path(pid)
            yield f"logs {id_}", self._log_path(id_)

    def _upper_path(self, pid: int) -> Callable[[], str | None]:
        return lambda: self._processes.upper_directory(pid)

    def _log_path(self, id_: str) -> Callable[[], str | None]:
        return lambda: f"{self._root_dir}/containers/{id_}" if self._root_dir else None

    def _share(self, walk: _Walk | None, path: str) -> DiskShare | None:
        if walk is None or walk.size is None:
            return None
        usage = self._usage(path)
        return None if usage is None else DiskShare(size=walk.size, filesystem=usage)

    def _usage(self, path: str) -> FilesystemUsage | None:
        """At most a few seconds old: three hundred directories are on one filesystem."""
        now = self._clock.boot_seconds()
        at, usage = self._usages.get(path, (-_USAGE_SECONDS, None))
        if now - at >= _USAGE_SECONDS:
            usage = self._filesystems.usage(path)
            self._usages[path] = (now, usage)
        return usage


def _fixed(path: str, now: float) -> _Walk:
    return _Walk(lambda: path, now)
