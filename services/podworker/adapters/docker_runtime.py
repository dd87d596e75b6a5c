"""ContainerRuntime over Docker Engine. The engine's list is the truth; names are the fences.

Every verb runs whole in one thread of the lifecycle pool: a caller that is cancelled leaves it to end by
itself, as the engine would anyway.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from services.podworker.adapters import docker_names
from services.podworker.adapters.cgroup_parent import PodCgroups
from services.podworker.adapters.container_usage import refuse_below_usage
from services.podworker.adapters.docker_calls import DockerCalls
from services.podworker.adapters.docker_events import EventStream
from services.podworker.adapters.docker_observe import Observer
from services.podworker.adapters.docker_translate import (
    Observed,
    container_payload,
    listed,
    runtime_pods,
    sandbox_payload,
)
from services.podworker.adapters.pod_files import PodFiles
from services.podworker.core.container_config import ContainerConfig, ContainerUpdate, SandboxConfig
from services.podworker.core.model import RuntimePod, RuntimeSandbox
from services.podworker.core.node_facts import DNSConfig
from services.podworker.ports import EngineInfo, RuntimeRefused
from shared.kube import names

if TYPE_CHECKING:
    from docker import APIClient

_log = logging.getLogger("podbus.podworker.docker_runtime")

Result = TypeVar("Result")

LIFECYCLE_THREADS = 8
"""Beyond 8 concurrent calls only the latency grows: the engine is bound by CPU."""
SANDBOX_STOP_SECONDS = 10


class DockerRuntime:
    """ContainerRuntime (services.podworker.ports) for the containers that carry this instance's label."""

    def __init__(
        self, instance: str, files: PodFiles, cgroups: PodCgroups, base_url: str | None = None, network: str = ""
    ) -> None:
        """`network`: that the sandboxes are on; "" = the engine's bridge."""
        self._network = network or "bridge"
        self._instance = instance
        self._files = files
        self._cgroups = cgroups
        self._calls = DockerCalls("docker", LIFECYCLE_THREADS, base_url)
        self._observer = Observer(files.secret_values)
        self._streams: list[EventStream] = []
        self._refuses_negative_oom: bool | None = None
        """None until a start has shown it."""

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
        self._calls.close()

    async def info(self) -> EngineInfo:
        return await self._calls.run(lambda client: _info(client, self._network))

    async def list_pods(self) -> Mapping[str, RuntimePod]:
        return await self._calls.run(lambda client: self._list(client, []))

    async def pod(self, uid: str) -> RuntimePod | None:
        pods = await self._calls.run(lambda client: self._list(client, [f"{names.LABEL_POD_UID}={uid}"]))
        return pods.get(uid)

    async def foreign_sandboxes(self) -> Sequence[str]:
        def call(client: APIClient) -> list[str]:
            label = f"{names.LABEL_DOCKER_TYPE}={names.TYPE_SANDBOX}"
            found = client.containers(all=True, filters={"label": [label]})
            foreign = [one for one in found if not self._is_ours(one.get("Labels"))]
            return sorted(str((one.get("Names") or [one["Id"]])[0]).removeprefix("/") for one in foreign)

        return await self._calls.run(call)

    async def run_pod_sandbox(self, config: SandboxConfig) -> str:
        with _refusals("FailedCreatePodSandBox"):
            return await self._calls.run(lambda client: self._run_sandbox(client, config))

    async def create_container(self, config: ContainerConfig, sandbox_id: str) -> str:
        with _refusals("CreateContainerError"):
            return await self._calls.run(lambda client: self._create(client, config, sandbox_id))

    async def start_container(self, container_id: str) -> None:
        with _refusals("RunContainerError"):
            await self._calls.run(lambda client: self._start(client, container_id))

    async def update_container(self, container_id: str, update: ContainerUpdate) -> None:
        def call(client: APIClient) -> None:
            refuse_below_usage(client, container_id, update.memory)
            # Twice: what grows must be there before the container's, what shrinks is refused until after.
            self._cgroups.limit(update.cgroup_parent, update.pod_limits)
            client.update_container(
                container_id,
                cpu_shares=update.cpu_shares,
                cpu_period=update.cpu_period,
                cpu_quota=update.cpu_quota or -1,
                # A limit can't be taken away by it: 0 leaves the old one.
                mem_limit=update.memory or None,
                memswap_limit=update.memory or None,
            )
            self._observer.forget(container_id)
            self._cgroups.limit(update.cgroup_parent, update.pod_limits)

        with _refusals("ResizeError"):
            await self._calls.run(call)

    async def signal_container(self, container_id: str, signal: str) -> None:
        def call(client: APIClient) -> None:
            seen = None if signal else self._observer.look(client, container_id)
            name = signal or (seen.stop_signal if seen else "") or "SIGTERM"
            _if_there(lambda: client.kill(container_id, signal=name), gone=(404, 409))

        with _refusals("KillContainerError"):
            await self._calls.run(call)

    async def remove_container(self, container_id: str) -> None:
        def call(client: APIClient) -> None:
            seen = self._observer.recall(container_id) or self._observer.look(client, container_id)
            if seen is None:
                return
            docker_names.remove(client, container_id)
            self._observer.forget(container_id)
            self._files.unlink_log(seen.labels, container_id)

        with _refusals("RemoveContainerError"):
            await self._calls.run(call)

    async def stop_pod_sandbox(self, sandbox_id: str) -> None:
        def call(client: APIClient) -> None:
            _if_there(lambda: client.stop(sandbox_id, timeout=SANDBOX_STOP_SECONDS), gone=(404,))

        with _refusals("KillPodSandboxError"):
            await self._calls.run(call)

    async def remove_pod_sandbox(self, sandbox_id: str) -> None:
        with _refusals("KillPodSandboxError"):
            await self._calls.run(lambda client: docker_names.remove(client, sandbox_id))
        self._observer.forget(sandbox_id)

    async def remove_pod_leftovers(self, uid: str) -> None:
        def call(_client: APIClient) -> None:
            self._cgroups.remove(uid)
            self._files.remove_pod(uid)

        await self._calls.run(call)

    def changes(self) -> AsyncIterator[str | None]:
        stream = EventStream(self._calls, self._instance, self._observer.forget)
        self._streams = [*(one for one in self._streams if not one.is_closed), stream]
        return stream.changes()

    def _is_ours(self, labels: Mapping[str, str] | None) -> bool:
        return (labels or {}).get(names.LABEL_INSTANCE) == self._instance

    def _list(self, client: APIClient, labels: Sequence[str]) -> dict[str, RuntimePod]:
        wanted = [f"{names.LABEL_INSTANCE}={self._instance}", names.LABEL_POD_UID, *labels]
        mark = self._observer.mark()
        entries = [listed(entry) for entry in client.containers(all=True, filters={"label": wanted})]
        seen = self._observer.update(client, entries, mark, whole=not labels)
        return runtime_pods(seen)

    def _run_sandbox(self, client: APIClient, config: SandboxConfig) -> str:
        self._files.prepare_sandbox(config)
        self._cgroups.limit(config.cgroup_parent, config.limits)
        score = self._allowed_score(config.oom_score_adj)
        try:
            sandbox_id = self._start_sandbox(client, config, score)
        except RuntimeRefused:
            if score >= 0 or self._refuses_negative_oom is not None:
                raise
            # Only the second try tells whether it was the score: runc's words for it tell nothing.
            sandbox_id = self._start_sandbox(client, config, 0)
            self._refuses_negative_oom = True
            _log.warning("the engine can't set a negative oom_score_adj (no CAP_SYS_RESOURCE): 0 is used (told once)")
        else:
            if score < 0:
                self._refuses_negative_oom = False
        return sandbox_id

    def _start_sandbox(self, client: APIClient, config: SandboxConfig, score: int) -> str:
        """On failure nothing stays."""
        sandbox_id = docker_names.create(
            client,
            sandbox_payload(config, score),
            config.name,
            self._instance,
            lambda seen: isinstance(seen.fact, RuntimeSandbox) and seen.fact.ready,
        )
        try:
            with _refusals("FailedCreatePodSandBox"):
                client.start(sandbox_id)
                if config.dns != DNSConfig():
                    path = client.inspect_container(sandbox_id)["ResolvConfPath"]
                    self._files.write_resolv_conf(path, config.dns)
        except RuntimeRefused:
            docker_names.remove(client, sandbox_id)
            raise
        return sandbox_id

    def _create(self, client: APIClient, config: ContainerConfig, sandbox_id: str) -> str:
        sandbox = self._observer.recall(sandbox_id, fresh=True) or self._observer.look(client, sandbox_id)
        ips = sandbox.fact.ips if sandbox and isinstance(sandbox.fact, RuntimeSandbox) else ()
        self._files.prepare_container(config, ips)
        self._cgroups.limit(config.cgroup_parent, config.pod_limits)
        file = config.security.seccomp_file
        seccomp = self._files.read_seccomp(file) if file else ""
        payload = container_payload(config, self._allowed_score(config.oom_score_adj), seccomp)
        return docker_names.create(
            client, payload, config.name, self._instance, lambda seen: _same_attempt(seen, config)
        )

    def _start(self, client: APIClient, container_id: str) -> None:
        try:
            client.start(container_id)
        finally:
            # The list that follows finds it inspected already.
            seen = self._observer.look(client, container_id)
            if seen is not None:
                self._files.link_log(seen.labels, container_id, seen.engine_log)

    def _allowed_score(self, score: int) -> int:
        return 0 if score < 0 and self._refuses_negative_oom else score


def _same_attempt(seen: Observed, config: ContainerConfig) -> bool:
    compared = (
        names.LABEL_POD_UID,
        names.LABEL_CONTAINER_NAME,
        names.LABEL_SANDBOX_ID,
        names.ANNOTATION_HASH,
        names.ANNOTATION_RESTART_COUNT,
    )
    return all(seen.labels.get(label) == config.labels.get(label) for label in compared)


def _info(client: APIClient, network: str) -> EngineInfo:
    version, info = client.version(), client.info()
    return EngineInfo(
        version=version.get("Version", ""),
        api_version=version.get("ApiVersion", ""),
        cgroup_driver=info.get("CgroupDriver", ""),
        cgroup_version=int(info.get("CgroupVersion") or 1),
        root_dir=info.get("DockerRootDir", ""),
        live_restore=bool(info.get("LiveRestoreEnabled")),
        log_driver=info.get("LoggingDriver", ""),
        security_options=tuple(info.get("SecurityOptions") or ()),
        subnets=_subnets(client, network),
    )


def _subnets(client: APIClient, network: str) -> tuple[str, ...]:
    """None when there is no such network; a pod will say so."""
    from docker.errors import NotFound

    try:
        settings = client.inspect_network(network).get("IPAM") or {}
    except NotFound:
        return ()
    return tuple(one["Subnet"] for one in settings.get("Config") or () if one.get("Subnet"))


def _if_there(call: Callable[[], Any], gone: tuple[int, ...]) -> None:
    from docker.errors import APIError

    try:
        call()
    except APIError as error:
        if error.status_code not in gone:
            raise


@contextmanager
def _refusals(reason: str) -> Iterator[None]:
    """The engine's own words under the Kubernetes reason; a file that can't be written likewise."""
    from docker.errors import APIError

    try:
        yield
    except APIError as error:
        raise RuntimeRefused(reason, error.explanation or str(error)) from error
    except OSError as error:
        raise RuntimeRefused(reason, str(error)) from error
