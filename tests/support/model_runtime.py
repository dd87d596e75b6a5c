"""An engine in memory: a ContainerRuntime and an ImageService over a given clock.

What a container does is told by its command or by its pod's annotations, so that scripts are manifests:

    command [sleep, "5"]          exits with 0 after 5 s
    command [sh, -c, "exit 3"]    exits with 3 at once
    command [sh, -c, "sleep 5; exit 3"]  exits with 3 after 5 s
    model/run-for: "5"            every container of the pod exits after 5 s (with model/exit-code, default 0)
    model/ignore-term: "true"     only SIGKILL ends them
    model/start-error: TEXT       starting them is refused, the container stays as exited with 127
    model/create-error: TEXT      creating them is refused
    model/sandbox-error: TEXT     the sandbox can't be made
    model/c.ignore-term: "true"   as above, of container c alone

Anything else runs for ever and ends with 143 on its stop signal, 137 on SIGKILL.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from services.podworker.core.container_config import ContainerConfig, ContainerUpdate, SandboxConfig
from services.podworker.core.hook_labels import handler_from_labels
from services.podworker.core.image_credentials import Credential
from services.podworker.core.image_layers import BuildStep, ImageLayers
from services.podworker.core.model import RunState, RuntimeContainer, RuntimePod, RuntimeSandbox
from services.podworker.ports import (
    EngineInfo,
    ExecResult,
    ImageInfo,
    ImagePullFailed,
    PullProgress,
    RuntimeRefused,
    RuntimeUnavailable,
)
from shared.kube import names
from tests.support.model_commands import KILLED, ModelCommands

ANNOTATION = "annotation.model/"


@dataclass
class ModelSandbox:
    id: str
    config: SandboxConfig
    created_at: float
    ready: bool = True
    ip: str = ""


@dataclass
class ModelContainer:
    id: str
    config: ContainerConfig
    created_at: float
    script: Mapping[str, str]
    started_at: float | None = None
    finished_at: float | None = None
    exit_code: int = 0
    exits_at: float | None = None
    error: str = ""
    signals: list[str] = field(default_factory=list)

    @property
    def is_running(self) -> bool:
        return self.started_at is not None and self.finished_at is None

    def end(self, code: int, now: float) -> None:
        if self.is_running:
            self.exit_code, self.finished_at, self.exits_at = code, now, None


class ModelRuntime:
    """All of it lives in this object, so it outlives a worker that is thrown away."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ids = (f"{number:064x}" for number in itertools.count(1))
        self._watchers: list[asyncio.Queue[str | None]] = []
        self.sandboxes: dict[str, ModelSandbox] = {}
        self.containers: dict[str, ModelContainer] = {}
        self.foreign: dict[str, str] = {}
        """Containers of others: id -> name. They are never to be touched."""
        self.local_images: dict[str, ImageInfo] = {}
        self.registry: dict[str, ImageInfo] = {}
        self.unavailable = False
        self.commands = ModelCommands(
            self._check, lambda key: key in self.containers and self.containers[key].is_running
        )
        self.calls: list[tuple[str, str]] = []
        """Every change that was asked for: (verb, name or id)."""
        for reference in ("busybox:1.36", "podbus/pause:3.10"):
            self.local_images[reference] = an_image(reference)

    # -- what tests do to it

    def tick(self) -> None:
        """Let the containers exit whose time has come."""
        now = self._clock()
        for container in self.containers.values():
            if container.exits_at is not None and container.exits_at <= now:
                container.end(int(container.script.get("exit-code", "0")), container.exits_at)
                self._changed(container.config.uid)

    def kill_sandbox(self, sandbox_id: str) -> None:
        self.sandboxes[sandbox_id].ready = False
        self._changed(self.sandboxes[sandbox_id].config.uid)

    def reboot(self) -> None:
        """Nothing runs any more; all records stay."""
        for sandbox in self.sandboxes.values():
            sandbox.ready = False
        for container in self.containers.values():
            container.end(255, self._clock())

    def live_sandboxes(self, uid: str) -> list[ModelSandbox]:
        return [s for s in self.sandboxes.values() if s.config.uid == uid and s.ready]

    # -- ContainerRuntime

    async def info(self) -> EngineInfo:
        return EngineInfo(
            version="model",
            api_version="1.41",
            cgroup_driver="cgroupfs",
            cgroup_version=1,
            root_dir="/var/lib/docker",
            live_restore=True,
            log_driver="json-file",
        )

    async def list_pods(self) -> Mapping[str, RuntimePod]:
        self._check()
        uids = {s.config.uid for s in self.sandboxes.values()}
        uids |= {c.config.uid for c in self.containers.values()}
        return {uid: self._show(uid) for uid in sorted(uids)}

    async def pod(self, uid: str) -> RuntimePod | None:
        self._check()
        shown = self._show(uid)
        return shown if shown.sandboxes or shown.containers else None

    async def foreign_sandboxes(self) -> Sequence[str]:
        return sorted(self.foreign.values())

    async def run_pod_sandbox(self, config: SandboxConfig) -> str:
        self._check()
        self.calls.append(("run_pod_sandbox", config.name))
        error = config.labels.get(f"{ANNOTATION}sandbox-error")
        if error:
            raise RuntimeRefused("FailedCreatePodSandBox", error)
        leftovers = [s for s in self.sandboxes.values() if s.config.name == config.name]
        for leftover in leftovers:
            if leftover.ready:
                return leftover.id
            del self.sandboxes[leftover.id]
        sandbox = ModelSandbox(next(self._ids), config, self._clock())
        sandbox.ip = f"172.17.{len(self.calls) // 250 % 250}.{len(self.calls) % 250 + 2}"
        self.sandboxes[sandbox.id] = sandbox
        self._changed(config.uid)
        return sandbox.id

    async def create_container(self, config: ContainerConfig, sandbox_id: str) -> str:
        self._check()
        self.calls.append(("create_container", config.name))
        holder = next((c for c in self.containers.values() if c.config.name == config.name), None)
        if holder is not None:
            has_run = holder.finished_at is not None or holder.error
            if holder.config.labels == config.labels and not has_run:
                return holder.id
            raise RuntimeRefused("CreateContainerError", f'name "{config.name}" is already in use')
        sandbox = self.sandboxes[sandbox_id]
        script = _script(config, sandbox.config.labels)
        if "create-error" in script:
            raise RuntimeRefused("CreateContainerError", script["create-error"])
        if config.image not in self.local_images:
            raise RuntimeRefused("CreateContainerError", f"No such image: {config.image}")
        container = ModelContainer(next(self._ids), config, self._clock(), script)
        self.containers[container.id] = container
        self._changed(config.uid)
        return container.id

    async def start_container(self, container_id: str) -> None:
        self._check()
        container = self._container(container_id)
        self.calls.append(("start_container", container.config.name))
        if container.started_at is not None:
            return
        if not self.sandboxes[container.config.sandbox_id].ready:
            raise RuntimeRefused("RunContainerError", "cannot join network of a non running container")
        self._changed(container.config.uid)
        if "start-error" in container.script:
            container.exit_code, container.error = 127, container.script["start-error"]
            raise RuntimeRefused("RunContainerError", container.error)
        container.started_at = self._clock()
        if "run-for" in container.script:
            container.exits_at = container.started_at + float(container.script["run-for"])
            self.tick()

    async def signal_container(self, container_id: str, signal: str) -> None:
        self._check()
        self._refuse_foreign(container_id)
        container = self.containers.get(container_id)
        if container is None:
            return
        self.calls.append(("signal_container", container.config.name))
        container.signals.append(signal or "SIGTERM")
        if signal == "SIGKILL":
            container.end(137, self._clock())
        elif container.script.get("ignore-term") != "true":
            container.end(143, self._clock())
        self._changed(container.config.uid)

    async def remove_container(self, container_id: str) -> None:
        self._check()
        self._refuse_foreign(container_id)
        container = self.containers.pop(container_id, None)
        if container is not None:
            self.commands.end(KILLED, container_id)
            self.calls.append(("remove_container", container.config.name))
            self._changed(container.config.uid)

    async def stop_pod_sandbox(self, sandbox_id: str) -> None:
        self._check()
        self._refuse_foreign(sandbox_id)
        sandbox = self.sandboxes.get(sandbox_id)
        if sandbox is not None:
            self.calls.append(("stop_pod_sandbox", sandbox.config.name))
            sandbox.ready = False
            self._changed(sandbox.config.uid)

    async def remove_pod_sandbox(self, sandbox_id: str) -> None:
        self._check()
        self._refuse_foreign(sandbox_id)
        sandbox = self.sandboxes.pop(sandbox_id, None)
        if sandbox is not None:
            self.calls.append(("remove_pod_sandbox", sandbox.config.name))
            self._changed(sandbox.config.uid)

    async def remove_pod_leftovers(self, uid: str) -> None:
        self._check()

    async def changes(self) -> AsyncIterator[str | None]:
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._watchers.append(queue)
        queue.put_nowait(None)
        try:
            while True:
                yield await queue.get()
        finally:
            self._watchers.remove(queue)

    # -- CommandRunner

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float | None) -> ExecResult:
        self._refuse_foreign(container_id)
        return await self.commands.exec_sync(container_id, command, seconds)

    async def update_container(self, container_id: str, update: ContainerUpdate) -> None:
        container = self._container(container_id)
        self.calls.append(("update_container", container_id))
        if text := container.script.get("update-error"):
            raise RuntimeRefused("ResizeError", text)
        container.config = replace(
            container.config, cpu_shares=update.cpu_shares, cpu_quota=update.cpu_quota, memory=update.memory
        )

    # -- ImageService

    async def image(self, reference: str) -> ImageInfo | None:
        self._check()
        return self.local_images.get(reference)

    async def pull_image(
        self, reference: str, progress: PullProgress, credential: Credential | None = None
    ) -> ImageInfo:
        self._check()
        self.calls.append(("pull_image", reference))
        info = self.registry.get(reference)
        if info is None:
            raise ImagePullFailed("ErrImagePull", f"manifest for {reference} not found: manifest unknown")
        progress(info.size // 2, info.size)
        self.local_images[reference] = info
        return info

    async def images(self) -> Sequence[ImageInfo]:
        return list(self.local_images.values())

    async def image_layers(self, image_id: str) -> ImageLayers | None:
        """One layer each."""
        found = next((image for image in self.local_images.values() if image.id == image_id), None)
        if found is None:
            return None
        steps = (BuildStep(size=found.size, command="ADD"),)
        return ImageLayers(layers=(found.id,), steps=steps, size=found.size)

    # -- inside

    def _check(self) -> None:
        self.tick()
        if self.unavailable:
            raise RuntimeUnavailable("the engine doesn't answer")

    def _container(self, container_id: str) -> ModelContainer:
        self._refuse_foreign(container_id)
        return self.containers[container_id]

    def _refuse_foreign(self, object_id: str) -> None:
        assert object_id not in self.foreign, f"{self.foreign[object_id]} isn't ours"

    def _changed(self, uid: str) -> None:
        for container in self.containers.values():
            if container.config.uid == uid and not container.is_running:
                self.commands.end(KILLED, container.id)
        for queue in self._watchers:
            queue.put_nowait(uid)

    def _show(self, uid: str) -> RuntimePod:
        sandboxes = [s for s in self.sandboxes.values() if s.config.uid == uid]
        containers = [c for c in self.containers.values() if c.config.uid == uid]
        configs = [s.config for s in sandboxes] + [c.config for c in containers]
        labels = configs[0].labels if configs else {}
        return RuntimePod(
            uid=uid,
            namespace=labels.get(names.LABEL_POD_NAMESPACE, ""),
            name=labels.get(names.LABEL_POD_NAME, ""),
            sandboxes=tuple(_show_sandbox(s) for s in reversed(sandboxes)),
            containers=tuple(_show_container(c) for c in reversed(containers)),
            grace_seconds=int(labels.get(names.ANNOTATION_GRACE, "30")),
        )


def an_image(reference: str, size: int = 4 * 2**20) -> ImageInfo:
    return ImageInfo(id=f"sha256:{reference}", names=(reference,), size=size)


def _script(config: ContainerConfig, sandbox_labels: Mapping[str, str]) -> dict[str, str]:
    script = {key.removeprefix(ANNOTATION): text for key, text in sandbox_labels.items() if key.startswith(ANNOTATION)}
    own = f"{config.container}."
    script |= {key.removeprefix(own): text for key, text in script.items() if key.startswith(own)}
    match config.command:
        case ("sleep", seconds) if seconds.isdigit():
            script.setdefault("run-for", seconds)
        case ("sh", "-c", line) if line.startswith("exit "):
            script.setdefault("run-for", "0")
            script.setdefault("exit-code", line.removeprefix("exit "))
        case ("sh", "-c", line) if match := re.fullmatch(r"sleep (\d+); exit (\d+)", line):
            script.setdefault("run-for", match[1])
            script.setdefault("exit-code", match[2])
        case _:
            pass
    return script


def _show_sandbox(sandbox: ModelSandbox) -> RuntimeSandbox:
    return RuntimeSandbox(
        id=sandbox.id,
        attempt=sandbox.config.attempt,
        ready=sandbox.ready,
        created_at=sandbox.created_at,
        ips=(sandbox.ip,) if sandbox.ready else (),
        pid=1 if sandbox.ready else 0,
        host_network=sandbox.config.network_mode == "host",
    )


def _show_container(container: ModelContainer) -> RuntimeContainer:
    config = container.config
    has_ended = container.finished_at is not None or bool(container.error)
    sidecar = config.labels.get(names.LABEL_SIDECAR, "")
    state: RunState = "running" if container.is_running else "exited" if has_ended else "created"
    return RuntimeContainer(
        id=container.id,
        name=config.container,
        attempt=config.attempt,
        state=state,
        sandbox_id=config.sandbox_id,
        image=config.image,
        image_id=f"docker://sha256:{config.image}",
        created_at=container.created_at,
        started_at=container.started_at,
        finished_at=container.finished_at,
        exit_code=container.exit_code,
        error=container.error,
        cpu_shares=config.cpu_shares,
        cpu_quota=config.cpu_quota,
        memory=config.memory,
        hash=config.labels[names.ANNOTATION_HASH],
        pre_stop=handler_from_labels(
            config.labels.get(names.ANNOTATION_PRE_STOP, ""), config.labels.get(names.ANNOTATION_PORTS, "")
        ),
        sidecar=int(sidecar) if sidecar.isdigit() else None,
    )
