"""The engine's ports with every call counted and timed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from services.podworker.core.container_config import ContainerConfig, ContainerUpdate, SandboxConfig
from services.podworker.core.image_credentials import Credential
from services.podworker.core.image_layers import ImageLayers
from services.podworker.core.model import RuntimePod
from services.podworker.handlers.measures import Measures
from services.podworker.ports import (
    CommandRunner,
    ContainerRuntime,
    EngineInfo,
    ExecResult,
    ImageInfo,
    ImageService,
    PullProgress,
)


class MeasuredRuntime:
    """ContainerRuntime (services.podworker.ports)."""

    def __init__(self, runtime: ContainerRuntime, measures: Measures) -> None:
        self._runtime = runtime
        self._measured = measures.operation

    async def info(self) -> EngineInfo:
        with self._measured("status"):
            return await self._runtime.info()

    async def list_pods(self) -> Mapping[str, RuntimePod]:
        with self._measured("list_podsandbox"):
            return await self._runtime.list_pods()

    async def pod(self, uid: str) -> RuntimePod | None:
        with self._measured("podsandbox_status"):
            return await self._runtime.pod(uid)

    async def foreign_sandboxes(self) -> Sequence[str]:
        return await self._runtime.foreign_sandboxes()

    async def run_pod_sandbox(self, config: SandboxConfig) -> str:
        with self._measured("run_podsandbox"):
            return await self._runtime.run_pod_sandbox(config)

    async def create_container(self, config: ContainerConfig, sandbox_id: str) -> str:
        with self._measured("create_container"):
            return await self._runtime.create_container(config, sandbox_id)

    async def start_container(self, container_id: str) -> None:
        with self._measured("start_container"):
            await self._runtime.start_container(container_id)

    async def update_container(self, container_id: str, update: ContainerUpdate) -> None:
        with self._measured("update_container"):
            await self._runtime.update_container(container_id, update)

    async def signal_container(self, container_id: str, signal: str) -> None:
        with self._measured("stop_container"):
            await self._runtime.signal_container(container_id, signal)

    async def remove_container(self, container_id: str) -> None:
        with self._measured("remove_container"):
            await self._runtime.remove_container(container_id)

    async def stop_pod_sandbox(self, sandbox_id: str) -> None:
        with self._measured("stop_podsandbox"):
            await self._runtime.stop_pod_sandbox(sandbox_id)

    async def remove_pod_sandbox(self, sandbox_id: str) -> None:
        with self._measured("remove_podsandbox"):
            await self._runtime.remove_pod_sandbox(sandbox_id)

    async def remove_pod_leftovers(self, uid: str) -> None:
        await self._runtime.remove_pod_leftovers(uid)

    def changes(self) -> AsyncIterator[str | None]:
        return self._runtime.changes()


class MeasuredImages:
    """ImageService (services.podworker.ports)."""

    def __init__(self, images: ImageService, measures: Measures) -> None:
        self._images = images
        self._measures = measures

    async def image(self, reference: str) -> ImageInfo | None:
        with self._measures.operation("image_status"):
            return await self._images.image(reference)

    async def pull_image(
        self, reference: str, progress: PullProgress, credential: Credential | None = None
    ) -> ImageInfo:
        with self._measures.operation("pull_image"):
            return await self._images.pull_image(reference, progress, credential)

    async def images(self) -> Sequence[ImageInfo]:
        with self._measures.operation("list_images"):
            return await self._images.images()

    async def image_layers(self, image_id: str) -> ImageLayers | None:
        with self._measures.operation("image_status"):
            return await self._images.image_layers(image_id)


class MeasuredCommands:
    """CommandRunner (services.podworker.ports)."""

    def __init__(self, commands: CommandRunner, measures: Measures) -> None:
        self._commands = commands
        self._measures = measures

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float | None) -> ExecResult:
        with self._measures.operation("exec_sync"):
            return await self._commands.exec_sync(container_id, command, seconds)
