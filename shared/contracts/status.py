"""What is so: bucket podbus_status. Pods by their owner, the runtime by the holder of slot 0, the node by status."""

from __future__ import annotations

import msgspec

from shared.contracts.envelope import Envelope
from shared.kube.status import PodStatus


class RunningContainer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where stats and the API find a live container: by id, process and start."""

    name: str
    """`POD` for the sandbox."""
    id: str
    pid: int
    started_at: float
    image_id: str = ""
    attempt: int = 0


class PodReport(Envelope, frozen=True, kw_only=True):
    """`pod.<uid>`: the pod's status as its owner generated it, and what runs for it."""

    uid: str
    namespace: str
    name: str
    source: str
    gen: int
    """Of the desired version that this status speaks of."""
    hash: str = ""
    rev: int
    """The owner's row revision: a smaller one is older."""
    owner: int
    """The worker's number."""
    state: str
    """waiting, sync, terminating, terminated, finished."""
    deletion_at: float = 0.0
    """When the pod was told to end; 0 = it wasn't."""
    deletion_grace: int = 0
    """Seconds."""
    cgroup_parent: str = ""
    status: PodStatus
    containers: list[RunningContainer] = []
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The v1.Pod being run, only while the desired key no longer carries it (a pod that is ending)."""


class NodeImage(msgspec.Struct, frozen=True, kw_only=True):
    names: list[str]
    size: int
    """Bytes."""


class RuntimeReport(Envelope, frozen=True, kw_only=True):
    """`runtime`: the engine, as the holder of slot 0 sees it."""

    healthy: bool
    message: str = ""
    """Why it isn't healthy."""
    relisted_at: float
    """Last complete list of containers; the node is NotReady when this is older than three minutes."""
    engine_version: str = ""
    api_version: str = ""
    cgroup_driver: str = ""
    cgroup_version: int = 0
    root_dir: str = ""
    live_restore: bool = False
    workers: list[int] = []
    """Numbers of the live workers."""
    images: list[NodeImage] = []
    images_bytes: int | None = None
    """Of all images together, shared layers once; None = not known."""
    subnets: list[str] = []
    """Of the network that the pods are on."""
    foreign_sandboxes: int = 0
    """Sandboxes on this engine with a kubelet's labels that aren't ours."""


class NodeReport(Envelope, frozen=True, kw_only=True):
    """`node`: the v1.Node that status computed (raw JSON)."""

    body: msgspec.Raw
