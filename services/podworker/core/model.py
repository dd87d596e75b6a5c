"""The facts that decisions are made on: what the runtime shows of a pod, and what its owner remembers of it.

Instants are float seconds since the epoch on the node's wall clock (the handlers re-base stored ones after a
reboot or a clock step). Everything is frozen; `msgspec.structs.replace` makes the next version.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from shared.kube.pod import Handler, ResourceRequirements
from shared.kube.status import PodStatus

RunState = Literal["created", "running", "exited", "unknown"]
HookState = Literal["", "running", "done", "failed"]
Verdict = Literal["", "success", "failure"]


class _Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class RuntimeContainer(_Fact, frozen=True, kw_only=True):
    """One instance (attempt) of a container as the engine shows it, labels decoded."""

    id: str
    name: str
    """The container's name in the pod's spec."""
    attempt: int
    state: RunState
    sandbox_id: str
    image: str
    """For status: the image's first repo tag where known, else the reference that was asked for."""
    image_id: str
    """For status: `docker-pullable://repo@sha256:...` or `docker://sha256:...`."""
    created_at: float
    started_at: float | None = None
    finished_at: float | None = None
    exit_code: int = 0
    oom_killed: bool = False
    error: str = ""
    """Docker's State.Error: why a start failed."""
    pid: int = 0
    hash: str = ""
    """Of the container's definition, from its label."""
    pre_stop: Handler | None = None
    """The hook of the definition that it was started with, from its label, the port as a number."""
    sidecar: int | None = None
    """A sidecar's place among the pod's init containers, from its label: at the pod's end they go in reverse."""
    cpu_shares: int = 0
    cpu_quota: int = 0
    """Microseconds per period of 100 ms; 0 = unlimited."""
    memory: int = 0
    """Bytes; 0 = unlimited."""
    termination_message: str = ""
    """Read by the adapter once the container has exited, by the policy in its labels, cut (lifecycle 4.4)."""

    @property
    def cannot_run(self) -> bool:
        """Never started: exit code set, no finish time (dockershim's ContainerCannotRun)."""
        return self.state == "exited" and self.started_at is None


class RuntimeSandbox(_Fact, frozen=True, kw_only=True):
    id: str
    attempt: int
    ready: bool
    """Running. A sandbox that is created but not started is not ready."""
    created_at: float
    ips: tuple[str, ...] = ()
    pid: int = 0
    host_network: bool = False


class RuntimePod(_Fact, frozen=True, kw_only=True):
    """All sandboxes and containers of one UID that carry this instance's label, newest first."""

    uid: str
    namespace: str
    name: str
    sandboxes: tuple[RuntimeSandbox, ...] = ()
    containers: tuple[RuntimeContainer, ...] = ()
    grace_seconds: int = 30
    """terminationGracePeriodSeconds from the labels: enough to end a pod whose spec is gone."""

    def newest(self, name: str) -> RuntimeContainer | None:
        """The newest instance of the named container, or None."""
        return next((c for c in self.containers if c.name == name), None)

    @property
    def running(self) -> tuple[RuntimeContainer, ...]:
        return tuple(c for c in self.containers if c.state == "running")


class Backoff(_Fact, frozen=True, kw_only=True):
    """A delay that doubles from failure to failure."""

    delay: float
    """Seconds."""
    updated_at: float
    error: str = ""
    """The failure that it counts from, as "<reason>: <text>" (pulls only)."""


class Stop(_Fact, frozen=True, kw_only=True):
    """A container that was told to end. It ends in any case: a stop is never taken back."""

    deadline: float
    """When SIGKILL is due. Only ever moves earlier, but for re-basing."""
    reason: str
    """Why: "terminating", "ended", "definition", "sandbox", "removed", "probe", "postStart", "restartAll"."""
    signalled_at: float | None = None
    """When the stop signal was sent; None = decided but not carried out yet: sent at the next look."""
    killed_at: float | None = None
    """When SIGKILL was last sent."""
    pre_stop: HookState = ""
    """Of the container's preStop hook, which comes before the stop signal. "" = none, or not begun."""
    begun_at: float | None = None
    """When it was decided: what a preStop hook that only sleeps counts from."""


class Verdicts(_Fact, frozen=True, kw_only=True):
    """What a container's probes have found, after thresholds. "" = nothing yet: readiness counts as failed, liveness
    as succeeded, startup as not over. Stored in the pod's row, so they survive their prober."""

    startup: Verdict = ""
    liveness: Verdict = ""
    readiness: Verdict = ""


class PostStart(_Fact, frozen=True, kw_only=True):
    """How a container's postStart hook goes. Run at least once: "running" with nobody running it is run again."""

    state: HookState
    message: str = ""
    """Why it failed."""
    begun_at: float | None = None
    """What a hook that only sleeps counts from."""


class Failure(_Fact, frozen=True, kw_only=True):
    """The pod as a whole has failed for a reason of its own (DeadlineExceeded, Evicted): never taken back."""

    reason: str
    message: str


class Waiting(_Fact, frozen=True, kw_only=True):
    """Why a container that should run doesn't: the last attempt's outcome (the kubelet's reason cache)."""

    reason: str
    message: str
    at: float
    retry_at: float | None = None
    """Not before this instant is the start tried again; None = at the next sync."""


class Termination(_Fact, frozen=True, kw_only=True):
    """The pod was told to end. Cannot be undone; `grace` only ever shrinks."""

    at: float
    grace: int
    reason: str
    """Why, for events and logs: "removed", "replaced", "deleted", "rejected", "orphaned"."""


class Rejection(_Fact, frozen=True, kw_only=True):
    reason: str
    message: str


class Preemption(_Fact, frozen=True, kw_only=True):
    """A critical pod waits until these pods have made room for it."""

    victims: tuple[str, ...]


class ResizePending(_Fact, frozen=True, kw_only=True):
    """The definition wants other resources than the pod was granted, and doesn't get them."""

    reason: str
    """Deferred or Infeasible."""
    message: str


class Resizing(_Fact, frozen=True, kw_only=True):
    """Resources were granted, and what runs is being given them."""

    error: str = ""
    """Why the last try failed."""
    retry_at: float = 0.0


class Anchor(_Fact, frozen=True, kw_only=True):
    """When a memory was stored, on three clocks: tells a reboot or a clock step from time that passed."""

    wall: float
    boot_seconds: float
    boot_id: str


SyncState = Literal["waiting", "sync", "terminating", "terminated", "finished"]


class PodMemory(_Fact, frozen=True, kw_only=True):
    """What the owner of a pod remembers of it: the content of its row in pods.db, beside the spec."""

    uid: str
    namespace: str
    name: str
    source: str
    gen: int = 0
    hash: str = ""
    seen_at: float = 0.0
    started_at: float | None = None
    """status.startTime: when its first status was stored; never changes."""
    admitted: bool = False
    rejection: Rejection | None = None
    termination: Termination | None = None
    terminated_at: float | None = None
    """All containers verified ended."""
    is_at_rest: bool = False
    """It has run to its end by itself, and nothing of it runs any more, its sandbox included: it takes no room."""
    stops: dict[str, Stop] = {}
    """By container id."""
    backoffs: dict[str, Backoff] = {}
    """Crash back-off by container name."""
    image_backoffs: dict[str, Backoff] = {}
    """Pull back-off by image reference."""
    waiting: dict[str, Waiting] = {}
    """By container name."""
    restarts: dict[str, int] = {}
    """Highest attempt ever started per container name, so that counts survive a removed container."""
    verdicts: dict[str, Verdicts] = {}
    """By container id."""
    post_starts: dict[str, PostStart] = {}
    """By container id."""
    failure: Failure | None = None
    restart_all: tuple[str, ...] = ()
    """All containers start over, for a rule RestartAllContainers has matched: the names of those whose exit asked for
    it, until the last container was removed."""
    restarted: dict[str, int] = {}
    """By container name, what the last RestartAllContainers removed: the highest attempt. Until an instance after it
    has ended, it's the container's last state."""
    devices: dict[str, tuple[str, ...]] = {}
    """By extended resource, the node's devices that it holds since admission."""
    allocated: dict[str, ResourceRequirements] = {}
    """By container name, the resources that it has been granted, while the definition wants others; {} = the same."""
    preempts: tuple[str, ...] = ()
    """Only in the stored row, of a critical pod that waits for room: UIDs of those that make it, for their owners."""
    resize_pending: ResizePending | None = None
    resizing: Resizing | None = None
    ips: tuple[str, ...] = ()
    """The last addresses, kept in the final status."""
    status: PodStatus | None = None
    """The last status generated, for transition times and the phase that sticks."""
    anchor: Anchor | None = None
    """Only in the stored row."""
