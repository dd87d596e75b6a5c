"""What the handlers of podworker need from outside, and the errors that these may raise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from services.podworker.core.admission import Demand as Demand
from services.podworker.core.admission import NodeLimits as NodeLimits
from services.podworker.core.config_objects import ConfigObject
from services.podworker.core.container_config import ContainerConfig, ContainerUpdate, Mount, SandboxConfig
from services.podworker.core.image_access import PulledImage
from services.podworker.core.image_credentials import Credential
from services.podworker.core.image_gc import Disk, LocalImage
from services.podworker.core.image_layers import ImageLayers
from services.podworker.core.model import PodMemory, Preemption, Rejection, RuntimePod
from services.podworker.core.mounts import MountRequest
from services.podworker.core.volumes import VolumeFault, VolumeSetup
from shared.contracts.events import Event
from shared.contracts.streams import ExecOptions, LogOptions
from shared.kube.references import ConfigRef


class RuntimeUnavailable(Exception):
    """The engine doesn't answer (restart, socket gone). Nothing is known of the outcome: look again later."""


class RuntimeRefused(Exception):
    """The engine said no: its own text. `reason` is the Kubernetes reason (CreateContainerError,
    RunContainerError, FailedCreatePodSandBox, CreateContainerConfigError)."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class ImagePullFailed(Exception):
    """A pull ended without an image: `reason` ErrImagePull, RegistryUnavailable..., the registry's own
    text."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class LogLost(Exception):
    """A log can't be read (on): its container is gone, or the engine is."""


class LogReader(Protocol):
    def read(self, container_id: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log's bytes, at the consumer's pace. Raises LogLost."""
        ...


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    api_version: str
    cgroup_driver: str
    cgroup_version: int
    root_dir: str
    live_restore: bool
    log_driver: str
    security_options: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()
    """Of the network that the sandboxes are on."""


class ImageInfo(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """`sha256:...`"""
    names: tuple[str, ...]
    """RepoDigests, then RepoTags."""
    size: int
    """Bytes."""
    user: str = ""
    """The image's own USER."""


PullProgress = Callable[[int, int], None]
"""Called with (bytes so far, bytes in all); in all is 0 while unknown. From any thread: must be
thread-safe."""


class ContainerRuntime(Protocol):
    """CRI verbs over the engine. Each is idempotent: what is there already, or gone already, is success."""

    async def info(self) -> EngineInfo: ...
    async def list_pods(self) -> Mapping[str, RuntimePod]:
        """Every pod of this instance by UID. Only what changed since the last call is inspected."""
        ...

    async def pod(self, uid: str) -> RuntimePod | None:
        """One pod, fresh from the engine; None when nothing of it is there."""
        ...

    async def foreign_sandboxes(self) -> Sequence[str]:
        """Names of sandboxes with a kubelet's labels but not this instance's: told at start, never
        touched."""
        ...

    async def run_pod_sandbox(self, config: SandboxConfig) -> str:
        """Create and start; the id. A leftover of the same name that isn't running is removed first. On
        failure nothing stays. Raises RuntimeRefused("FailedCreatePodSandBox", text)."""
        ...

    async def create_container(self, config: ContainerConfig, sandbox_id: str) -> str:
        """The id. Raises RuntimeRefused("CreateContainerError", text)."""
        ...

    async def start_container(self, container_id: str) -> None:
        """Raises RuntimeRefused("RunContainerError", text); the container then stays, as exited."""
        ...

    async def update_container(self, container_id: str, update: ContainerUpdate) -> None:
        """Other resources for a running container, and for its pod's cgroup: what grows grows there first, what shrinks
        shrinks there last. Raises RuntimeRefused("ResizeError", text)."""
        ...

    async def signal_container(self, container_id: str, signal: str) -> None:
        """Send the signal ("" = the image's STOPSIGNAL or SIGTERM). Not running is success."""
        ...

    async def remove_container(self, container_id: str) -> None:
        """Force, with its anonymous volumes."""
        ...

    async def stop_pod_sandbox(self, sandbox_id: str) -> None:
        """TERM, then KILL after 10 s; the dead sandbox stays, as the pod's record. Not running is success."""
        ...

    async def remove_pod_sandbox(self, sandbox_id: str) -> None:
        """Force. Containers that belong to it stay."""
        ...

    async def remove_pod_leftovers(self, uid: str) -> None:
        """After the last container is gone: the pod's cgroups and log links."""
        ...

    def changes(self) -> AsyncIterator[str | None]:
        """UIDs that something happened to, as hints; None = list everything: first of all, once the engine is
        watched, and whenever events may be lost. Never ends; reconnects by itself."""
        ...


class Leftovers(Protocol):
    """What pods leave on the node beside their containers."""

    async def uids(self) -> frozenset[str]:
        """Of all pods that have left anything, but for those where something has changed just now."""
        ...

    async def remove(self, uid: str) -> bool:
        """All of one pod's; False when something stays (mounted, or the pod has come back)."""
        ...

    async def drop_dangling_links(self, uids: Iterable[str]) -> int:
        """Log links of these pods to containers that the engine has no more."""
        ...


class ImageService(Protocol):
    async def image(self, reference: str) -> ImageInfo | None:
        """The local image, or None. Raises ImagePullFailed("ImageInspectError", text) when that can't be told."""
        ...

    async def pull_image(
        self, reference: str, progress: PullProgress, credential: Credential | None = None
    ) -> ImageInfo:
        """One flight per reference and credential on the node; None = as the engine asks by itself. Raises
        ImagePullFailed, RuntimeUnavailable."""
        ...

    async def images(self) -> Sequence[ImageInfo]: ...

    async def image_layers(self, image_id: str) -> ImageLayers | None:
        """None = it isn't there any more. Raises RuntimeUnavailable."""
        ...


class ImageStore(Protocol):
    """The engine's images, for their collection. All raise RuntimeUnavailable."""

    async def local_images(self) -> Sequence[LocalImage]: ...
    async def used_images(self) -> frozenset[str]:
        """Ids of those that a container was made of, whoever made it and whether it runs or not."""
        ...

    async def disk(self) -> Disk | None:
        """Of the images; None where it can't be seen."""
        ...

    async def remove_image(self, image_id: str, tags: Sequence[str], *, whole: bool) -> bool:
        """Take these names off it, and remove it if `whole`. False when the engine won't: it's used after all."""
        ...


class ExecResult(msgspec.Struct, frozen=True, kw_only=True):
    exit_code: int | None
    """None = it didn't end in time and was killed."""
    output: bytes
    """stdout and stderr as they came, at most MAX_OUTPUT_BYTES."""


MAX_OUTPUT_BYTES = 10 * 1024


class CommandRunner(Protocol):
    """Commands of exec probes and exec hooks, inside containers."""

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float | None) -> ExecResult:
        """Run with the container's user, environment and directory, and wait; `seconds` None = for ever.
        When the time is over, or when the caller is cancelled, the process is killed by its pid on the host, with its
        children. A command that can't be started ends with 126 or 127, the engine's words as its output. Raises
        RuntimeRefused when the container doesn't run, RuntimeUnavailable when the engine went away or has lost it.
        """
        ...


class ContainerSession(Protocol):
    """A command that runs in a container, or an attachment to one."""

    writer: asyncio.StreamWriter
    """stdin. Closing it lets go of the session; what runs in the container runs on."""
    is_raw: bool
    """With a terminal."""
    resize: Callable[[int, int], Awaitable[None]]
    """The terminal's (width, height); one that has just gone is no error."""
    exit_code: Callable[[], Awaitable[int | None]]
    """After the output's end; None = not known. Raises RuntimeUnavailable."""

    async def copy_output(self, target: asyncio.StreamWriter) -> None:
        """Frames of shared.streams.channels (stdout and stderr) to the target, until the output ends or the target
        breaks off."""
        ...


class ContainerSessions(Protocol):
    async def exec(self, container_id: str, options: ExecOptions) -> ContainerSession:
        """Raises RuntimeRefused("ExecError", text), RuntimeUnavailable."""
        ...

    async def attach(self, container_id: str, options: ExecOptions) -> ContainerSession:
        """Raises RuntimeRefused("AttachError", text), RuntimeUnavailable."""
        ...


class PodNetwork(Protocol):
    async def connect(self, pid: int, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To `port` of the loopback that process `pid` sees. Raises OSError, TimeoutError."""
        ...


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    body: bytes
    """At most MAX_OUTPUT_BYTES."""
    is_redirect_left: bool = False
    """A redirect to another host, which isn't followed. Too many to the same one are Unreachable."""


class Unreachable(Exception):
    """A connection or an answer that didn't come: its text tells why."""


class Network(Protocol):
    """Probes and hooks over the network, on the loop, without a thread. Nothing is verified, kept alive or proxied.
    The caller bounds each call with asyncio.timeout."""

    async def http_get(self, url: str, headers: Sequence[tuple[str, str]], *, follow: bool) -> HttpAnswer:
        """`follow`: redirects to the same host, at most ten. Raises Unreachable."""
        ...

    async def tcp_connect(self, host: str, port: int) -> None:
        """Raises Unreachable."""
        ...

    async def grpc_check(self, host: str, port: int, service: str) -> str:
        """The status word of grpc.health.v1 (SERVING...). Raises Unreachable."""
        ...


class StoredPod(msgspec.Struct, frozen=True, kw_only=True):
    """A row: the memory and the spec last applied."""

    memory: PodMemory
    body: bytes
    """v1.Pod JSON of the version being run (b"" for an orphan known only by its labels)."""
    rev: int


class StoreUnavailable(Exception):
    """The database can't be written (disk full, locked too long)."""


class PodStore(Protocol):
    """pods.db. Rows are written by the owner of their slot only. Calls take well under a millisecond and run
    on the loop; all raise StoreUnavailable."""

    def load(self, uid: str) -> StoredPod | None: ...
    def load_slots(self, slots: Iterable[int]) -> list[StoredPod]: ...
    def all_uids(self) -> set[str]: ...
    def save(self, memory: PodMemory, body: bytes, events: Sequence[Event] = ()) -> int:
        """Row and events in one transaction; returns the new rev."""
        ...

    def admit(
        self, memory: PodMemory, body: bytes, demand: Demand, limits: NodeLimits
    ) -> Rejection | Preemption | None:
        """One BEGIN IMMEDIATE transaction over all admitted, not ended pods: stores the pod as admitted, as
        rejected with the reason that is returned, or as waiting for those that it preempts."""
        ...

    def preempted(self) -> set[str]:
        """UIDs of the pods that waiting ones preempt."""
        ...

    def resize(self, memory: PodMemory, body: bytes, demand: Demand, limits: NodeLimits) -> Rejection | None:
        """The same for other resources of an admitted pod; nothing is stored when they don't fit."""
        ...

    def delete(self, uid: str) -> None: ...
    def bury(self, uid: str, gen: int, now: float) -> None:
        """Delete the row of a pod that its source took away, and know for some minutes that it has ended."""
        ...

    def buried(self, uid: str, now: float) -> int | None:
        """The generation with which the pod ended lately; None = it didn't."""
        ...

    def pending_events(self, limit: int) -> list[Event]: ...
    def acknowledge_events(self, ids: Sequence[str]) -> None: ...


class ImageRecords(Protocol):
    """Which images were pulled by this node's workers. Calls take well under a millisecond; all raise
    StoreUnavailable."""

    def begin(self, reference: str, now: float) -> None:
        """A pull is about to begin: until its end is told, nobody is known to have access to what it brings."""
        ...

    def give_up(self, reference: str) -> None: ...
    def pulled(self, image: PulledImage) -> None:
        """Adds to what is known of the image under this name."""
        ...

    def of(self, image_id: str) -> list[PulledImage]:
        """The image's records, and those of pulls that haven't ended."""
        ...

    def all(self) -> list[PulledImage]:
        """Of pulls that have ended."""
        ...

    def used(self, image_ids: Iterable[str], now: float) -> None: ...
    def forget(self, images: Iterable[PulledImage]) -> None: ...


class ConfigUnavailable(Exception):
    """Whether there is such an object isn't known now: ask again later."""


class ConfigObjects(Protocol):
    async def get(self, uid: str, ref: ConfigRef) -> ConfigObject | None:
        """What a pod refers to, fresh from its source; None = there is no such object. Raises ConfigUnavailable."""
        ...


class Volumes(Protocol):
    """A pod's volumes on the node."""

    async def set_up(self, setups: Sequence[VolumeSetup]) -> list[VolumeFault]:
        """Make each volume so, again and again: what is right already isn't touched, files that differ are replaced at
        once. What can't be made is told, and keeps what it had."""
        ...

    async def are_written(self, paths: Sequence[str]) -> bool:
        """Whether each of these volumes of files has been set up once."""
        ...

    async def bind(self, container: str, requests: Sequence[MountRequest]) -> list[Mount]:
        """Look up sub paths without leaving the volume. Raises ConfigError, OSError."""
        ...

    async def read_file(self, root: str, path: str) -> str | None:
        """Text of a file of a volume; None = it isn't there. Raises ConfigError."""
        ...

    async def tear_down(self, uid: str) -> None:
        """Unmount and remove all volumes of the pod; hostPaths stay as they are. Raises OSError."""
        ...
