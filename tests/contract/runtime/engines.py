"""What the suite runs on: Docker Engine, and the model of it that other tests rely on."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from services.podworker.adapters.cgroup_parent import PodCgroups
from services.podworker.adapters.docker_exec import DockerCommands
from services.podworker.adapters.docker_images import DockerImages
from services.podworker.adapters.docker_runtime import DockerRuntime
from services.podworker.adapters.pod_files import PodFiles
from services.podworker.core.container_config import (
    ContainerConfig,
    SandboxConfig,
    container_config,
    sandbox_config,
)
from services.podworker.core.node_facts import NodeFacts
from services.podworker.ports import CommandRunner, ContainerRuntime, ImageService
from shared.kube.pod import Pod
from tests.support.builders import a_container, a_node, a_pod
from tests.support.docker_env import docker_client, sweep
from tests.support.model_runtime import ModelRuntime

SLEEPER = ["sh", "-c", "trap 'exit 143' TERM; while true; do sleep 0.1; done"]
STUBBORN = ["sh", "-c", "trap '' TERM; while true; do sleep 0.1; done"]


class Engine(Protocol):
    node: NodeFacts

    @property
    def runtime(self) -> ContainerRuntime: ...
    @property
    def images(self) -> ImageService: ...
    @property
    def commands(self) -> CommandRunner: ...
    def restarted(self) -> ContainerRuntime:
        """The runtime as a new worker sees it."""
        ...

    def close(self) -> None: ...


SECRET_IN_A_FILE = "s3cret-of-a-volume"
"""What the pods' Secret volumes are said to hold."""


class DockerEngine:
    def __init__(self, directory: Path) -> None:
        self.client = docker_client()
        self.instance = f"test-{uuid.uuid4().hex[:12]}"
        self.directory = directory
        self.logs = directory / "logs" / "pods"
        self.container_logs = directory / "logs" / "containers"
        (directory / "run").mkdir(exist_ok=True)
        self.node = a_node(
            instance=self.instance,
            data_dir=str(directory / "data"),
            log_root=str(self.logs),
            # A test's cgroups must not mix with a node's.
            cgroup_root=f"/{self.instance}",
        )
        self._open: list[DockerRuntime | DockerImages | DockerCommands] = []
        self.runtime = self.restarted()
        self.images = DockerImages(directory / "run")
        self.commands = DockerCommands(lambda uid: [SECRET_IN_A_FILE])
        self._open += [self.images, self.commands]

    def restarted(self) -> DockerRuntime:
        files = PodFiles(Path(self.node.data_dir), self.logs, self.container_logs)
        runtime = DockerRuntime(self.instance, files, PodCgroups(cgroup_root=self.node.cgroup_root))
        self._open.append(runtime)
        return runtime

    def close(self) -> None:
        for opened in self._open:
            opened.close()
        sweep(self.client, self.instance)
        for directory, _, _ in os.walk("/sys/fs/cgroup", topdown=False):
            if f"/{self.instance}" in directory:
                os.rmdir(directory)
        self.client.close()


class ModelEngine:
    def __init__(self) -> None:
        self.node = a_node()
        self.runtime = self.images = self.commands = ModelRuntime(time.time)

    def restarted(self) -> ModelRuntime:
        return self.runtime

    def close(self) -> None:
        pass


def new_pod(*containers: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> Pod:
    """A pod with a UID of its own; without containers, one that ends with 143 on SIGTERM."""
    pod = a_pod(*(containers or (a_container(command=SLEEPER),)), annotations=annotations, **spec)
    uid = uuid.uuid4().hex
    return replace(pod, metadata=replace(pod.metadata, uid=uid, name=f"p-{uid[:8]}"))


def sandbox_of(engine: Engine, pod: Pod, attempt: int = 0) -> SandboxConfig:
    return sandbox_config(pod, engine.node, attempt)


def config_of(engine: Engine, pod: Pod, sandbox_id: str, attempt: int = 0, index: int = 0) -> ContainerConfig:
    return container_config(pod, pod.spec.containers[index], engine.node, attempt, sandbox_id=sandbox_id, source="file")


async def run_pod(engine: Engine, pod: Pod) -> tuple[str, list[str]]:
    """Start all of it: the ids of the sandbox and of the containers."""
    sandbox_id = await engine.runtime.run_pod_sandbox(sandbox_of(engine, pod))
    ids = []
    for index in range(len(pod.spec.containers)):
        config = config_of(engine, pod, sandbox_id, index=index)
        ids.append(await engine.runtime.create_container(config, sandbox_id))
        await engine.runtime.start_container(ids[-1])
    return sandbox_id, ids
