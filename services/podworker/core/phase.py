"""The pod's phase from the states of its containers (lifecycle 4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from services.podworker.core.container_states import container_statuses, init_container_statuses
from services.podworker.core.model import PodMemory, RuntimeContainer, RuntimePod
from services.podworker.core.restarts import is_replaced
from shared.kube.pod import Pod
from shared.kube.status import ContainerStatus, PodPhase, StateTerminated

TERMINAL: tuple[PodPhase, ...] = ("Succeeded", "Failed")


def is_terminal(phase: PodPhase) -> bool:
    return phase in TERMINAL


def projected_phase(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> PodPhase:
    """The phase that the containers give now; one that was terminal before stays."""
    if memory.status is not None and is_terminal(memory.status.phase):
        return memory.status.phase
    init = init_container_statuses(pod, memory, runtime)
    return phase_with_statuses(pod, memory, runtime, init, container_statuses(pod, memory, runtime))


def phase_with_statuses(
    pod: Pod,
    memory: PodMemory,
    runtime: RuntimePod,
    init: Sequence[ContainerStatus],
    regular: Sequence[ContainerStatus],
) -> PodPhase:
    """As `projected_phase`, with the statuses computed already."""
    if memory.status is not None and is_terminal(memory.status.phase):
        return memory.status.phase
    ended = memory.terminated_at is not None
    phase = pod_phase(
        pod,
        init,
        regular,
        has_started=any(c.state in ("created", "running") for c in runtime.containers),
        has_ended=ended and memory.source == "api",
        is_restarting=any(is_replaced(pod, memory, c) for c in _newest(pod, runtime)),
    )
    if ended and memory.source == "api" and not is_terminal(phase):
        # kubelet: whatever was missing, a pod of the API ends in a terminal phase.
        return "Failed"
    return phase


def _newest(pod: Pod, runtime: RuntimePod) -> Iterable[RuntimeContainer]:
    return (c for spec in pod.spec.containers if (c := runtime.newest(spec.name)) is not None)


def pod_phase(
    pod: Pod,
    init: Sequence[ContainerStatus],
    regular: Sequence[ContainerStatus],
    *,
    has_started: bool = False,
    has_ended: bool = False,
    is_restarting: bool = False,
) -> PodPhase:
    """The first rule that fits.

    `has_started`: a regular container of the pod was created or runs; `has_ended`: the pod was torn down
    (never set for static pods: they keep their last phase); `is_restarting`: an instance that we ended is to
    be replaced.
    """
    policy = pod.spec.restart_policy
    if policy == "Never" and any(_failed(status) for status in init):
        return "Failed"
    if not has_started and any(_is_pending_init(status) for status in init):
        return "Pending"
    ends = [_end(status) for status in regular]
    if any(status.state.waiting is not None and end is None for status, end in zip(regular, ends, strict=True)):
        return "Pending"
    running = sum(status.state.running is not None for status in regular)
    stopped = [end for end in ends if end is not None]
    if running + len(stopped) < len(regular) or not regular:
        return "Pending"
    if running:
        return "Running"
    if is_restarting and not has_ended:
        return "Running"
    return _phase_of_ends(policy, regular, stopped, has_ended=has_ended)


def _phase_of_ends(
    policy: str, regular: Sequence[ContainerStatus], stopped: Sequence[StateTerminated], *, has_ended: bool
) -> PodPhase:
    """Nothing runs, every container has ended at least once."""
    succeeded = all(
        status.state.terminated is not None and end.exit_code == 0 for status, end in zip(regular, stopped, strict=True)
    )
    if has_ended:
        return "Succeeded" if succeeded else "Failed"
    if policy == "Always":
        return "Running"
    if succeeded:
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _end(status: ContainerStatus) -> StateTerminated | None:
    """How a container ended that runs no more; waiting for a restart counts as ended."""
    if status.state.terminated is not None:
        return status.state.terminated
    return status.last_state.terminated if status.state.waiting is not None else None


def _failed(status: ContainerStatus) -> bool:
    end = _end(status)
    return end is not None and end.exit_code != 0


def _is_pending_init(status: ContainerStatus) -> bool:
    """Missing, running, or not run yet. A failed one doesn't hold the pod in Pending by itself: its restart
    does.
    """
    return _end(status) is None
