"""What the planner answers: a closed set of actions, the memory to store before acting on them, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import Backoff, PodMemory, RuntimePod
from shared.kube.pod import Handler


class SyncConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, all of them. The defaults are the kubelet's."""

    crash_initial: float = 10.0
    crash_max: float = 300.0
    """crashLoopBackOff.maxContainerRestartPeriod, 1..300. Below the initial value it is that one too."""
    reset_after: float = 600.0
    """A container that ran longer than this after its last restart starts its back-off anew."""
    image_initial: float = 10.0
    image_max: float = 300.0
    retry: float = 10.0
    """Between attempts after an error that has no back-off of its own."""
    min_stop: float = 2.0
    """A container gets at least this long between its stop signal and SIGKILL."""
    kill_again: float = 10.0


class CreateSandbox(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Create and start the sandbox. If it fails, nothing that follows in the plan is done."""

    attempt: int
    reason: str


class PullImage(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Make the image available as `images.pull_decision` says.

    If it fails, this container's start and other pulls of the reference in this plan are skipped.
    """

    container: str
    reference: str
    """With its tag."""
    policy: str
    reason: str


class StartContainer(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Create (or adopt the created one of that name) and start, in the pod's newest sandbox."""

    name: str
    attempt: int
    reason: str
    backoff: Backoff | None = None
    """What `results` stores once the start was tried."""


class UpdateContainer(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Give a running container other resources, its pod's cgroup with it."""

    container_id: str
    name: str
    cpu_shares: int
    cpu_quota: int
    memory: int
    reason: str


class Signal(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Send the stop signal and don't wait."""

    container_id: str
    name: str
    signal: str
    """"" = the image's STOPSIGNAL, else SIGTERM."""
    reason: str


class Kill(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """SIGKILL: the grace period is over."""

    container_id: str
    name: str
    reason: str


class RemoveContainer(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    container_id: str
    name: str
    reason: str


class StopSandbox(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """End the sandbox's process; the dead sandbox stays."""

    sandbox_id: str
    reason: str


class RemoveSandbox(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    sandbox_id: str
    reason: str


class HookRun(msgspec.Struct, frozen=True, kw_only=True):
    """A hook that should be under way. Not an action: it's started beside the plan if nobody runs it yet, and its end
    wakes the pod. Two are the same hook when container and kind are."""

    container_id: str
    name: str
    """The container's, in the spec."""
    kind: Literal["postStart", "preStop"]
    handler: Handler


Action = (
    CreateSandbox
    | PullImage
    | StartContainer
    | UpdateContainer
    | Signal
    | Kill
    | RemoveContainer
    | StopSandbox
    | RemoveSandbox
)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a pod. To be asked for again after the actions, after each change and at `wake_at`."""

    actions: tuple[Action, ...]
    """In order. After one that fails only containers are still ended; PullImage and StartContainer fail for theirs
    only."""
    memory: PodMemory
    """To be stored before acting."""
    wake_at: float | None
    """When something becomes due by itself: a deadline or the end of a back-off."""
    reasons: tuple[str, ...]
    """One line per decision, also for what was left alone on purpose."""
    events: tuple[PodEvent, ...]
    hooks: tuple[HookRun, ...] = ()
    """All that should be under way now; one under way that isn't here any more is given up."""


@dataclass
class Draft:
    """A plan in the making: the parts of the planner add to it. Never leaves the core."""

    memory: PodMemory
    runtime: RuntimePod
    now: float
    config: SyncConfig
    actions: list[Action] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    events: list[PodEvent] = field(default_factory=list)
    hooks: list[HookRun] = field(default_factory=list)
    wake_at: float | None = None
    held_by: str = ""
    """The container whose postStart hook isn't over: no later one starts meanwhile."""

    def act(self, action: Action) -> None:
        self.actions.append(action)
        self.reasons.append(action.reason)

    def note(self, reason: str) -> None:
        self.reasons.append(reason)

    def tell(self, event: PodEvent) -> None:
        self.events.append(event)

    def wake(self, at: float) -> None:
        self.wake_at = at if self.wake_at is None else min(self.wake_at, at)

    def hold(self, name: str) -> None:
        self.held_by = self.held_by or name

    def plan(self) -> Plan:
        return Plan(
            actions=tuple(self.actions),
            memory=self.memory,
            wake_at=self.wake_at,
            reasons=tuple(self.reasons),
            events=tuple(self.events),
            hooks=tuple(self.hooks),
        )
