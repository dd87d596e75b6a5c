"""ImageStore over Docker Engine. Never forces: an image that a container uses is the engine's to keep."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from services.podworker.adapters.docker_calls import DockerCalls
from services.podworker.core.image_gc import Disk, LocalImage

if TYPE_CHECKING:
    from docker import APIClient

_log = logging.getLogger("podbus.podworker.docker_image_store")


class DockerImageStore:
    """ImageStore (services.podworker.ports). `root` tells where the engine's file system is seen."""

    def __init__(self, root: Callable[[], Path], base_url: str | None = None) -> None:
        self._root = root
        self._calls = DockerCalls("docker-image-store", 1, base_url)

    def close(self) -> None:
        self._calls.close()

    async def local_images(self) -> Sequence[LocalImage]:
        def call(client: APIClient) -> list[LocalImage]:
            return [
                LocalImage(
                    id=one["Id"],
                    tags=tuple(tag for tag in one.get("RepoTags") or () if tag != "<none>:<none>"),
                    size=int(one.get("Size") or 0),
                )
                for one in client.images()
            ]

        return await self._calls.run(call)

    async def used_images(self) -> frozenset[str]:
        return await self._calls.run(
            lambda client: frozenset(str(one.get("ImageID", "")) for one in client.containers(all=True))
        )

    async def disk(self) -> Disk | None:
        def call(client: APIClient) -> Disk | None:
            directory = self._root() / str(client.info().get("DockerRootDir") or "/var/lib/docker").lstrip("/")
            try:
                found = os.statvfs(directory)
            except OSError as error:
                _log.info("the engine's disk can't be seen path=%s error=%s", directory, error)
                return None
            return Disk(capacity=found.f_blocks * found.f_frsize, available=found.f_bavail * found.f_frsize)

        return await self._calls.run(call)

    async def remove_image(self, image_id: str, tags: Sequence[str], *, whole: bool) -> bool:
        return await self._calls.run(lambda client: _remove(client, image_id, tags, whole))


def _remove(client: APIClient, image_id: str, tags: Sequence[str], whole: bool) -> bool:
    from docker.errors import APIError

    for name in (*tags, *([image_id] if whole else [])):
        try:
            client.remove_image(name)
        except APIError as error:
            if error.status_code == 404:  # the last name's removal has removed it
                continue
            _log.info("image stays name=%s error=%s", name, error.explanation)
            return False
    return True
