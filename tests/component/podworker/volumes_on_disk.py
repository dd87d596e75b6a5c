"""The real volume store below a directory of a test's own."""

from __future__ import annotations

import stat
from pathlib import Path

from services.podworker.adapters.volume_store import VolumeStore
from services.podworker.core.mounts import MountRequest
from services.podworker.core.volumes import FilesVolume, ProjectedFile, VolumeSetup

UID = "u1"


class Store:
    """Of one pod."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.store = VolumeStore(data)
        self.volumes = data / "pods" / UID / "volumes"

    def path(self, name: str, plugin: str = "empty-dir") -> str:
        return str(self.volumes / f"kubernetes.io~{plugin}" / name)

    def files(self, *files: ProjectedFile, memory: bool = True, group: int | None = None) -> FilesVolume:
        return FilesVolume(name="v", path=self.path("v", "secret"), files=files, memory=memory, group=group)

    async def made(self, setup: VolumeSetup) -> Path:
        assert await self.store.set_up([setup]) == []
        return Path(setup.path)

    async def bound(self, root: Path, sub_path: str, *, may_create: bool = True, on_host: bool = False) -> Path:
        request = MountRequest(
            volume="v",
            root=str(root),
            sub_path=sub_path,
            bind_path=str(self.data / "pods" / UID / "volume-subpaths" / "v" / "c" / "0"),
            target="/v",
            may_create=may_create,
            on_host=on_host,
            missing="no such key",
        )
        (mount,) = await self.store.bind("c", [request])
        return Path(mount.source)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
