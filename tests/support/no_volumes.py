"""A volume keeper for pods without volumes and references, which is asked for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from services.podworker.core.config_objects import ConfigObject
from services.podworker.core.container_config import Mount
from services.podworker.core.mounts import MountRequest
from services.podworker.core.volumes import VolumeFault, VolumeSetup
from services.podworker.handlers.volumes import VolumeKeeper
from shared.kube.references import ConfigRef
from shared.runtime.clock import SystemClock
from tests.support.builders import a_node


class Nothing:
    """No object is there, and nothing is made."""

    async def get(self, uid: str, ref: ConfigRef) -> ConfigObject | None:
        return None

    async def set_up(self, setups: Sequence[VolumeSetup]) -> list[VolumeFault]:
        return []

    async def are_written(self, paths: Sequence[str]) -> bool:
        return True

    async def bind(self, container: str, requests: Sequence[MountRequest]) -> list[Mount]:
        return []

    async def read_file(self, root: str, path: str) -> str | None:
        return None

    async def tear_down(self, uid: str) -> None:
        return None


def no_volumes() -> VolumeKeeper:
    nothing = Nothing()
    return VolumeKeeper(nothing, nothing, a_node(), SystemClock(), refresh_seconds=60)
