"""The pod's phase from the states of its containers (lifecycle 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from services.podworker.core.container_states import Statuses, all_statuses
from services.podworker.core.lost_containers import RESTARTING_ALL
from services.podworker.core.model import PodMemory, RuntimePod
from services.podworker.core.restart_rules import restarts_after_exit
from services.podworker.core.restarts import should_start
from shared.kube.pod import Pod, is_sidecar
from shared.kube.status import TERMINAL, ContainerStatus, PodPhase, StateTerminated

MayRestart = Callable[[str, StateTerminated], bool]
"""(container's name, how it ended) -> whether it is started again."""


def is_terminal(phase: PodPhase) -> bool:
    return phase in TERMINAL


def projected_phase(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> PodPhase:
    """The phase that the containers give now; one that was terminal before stays."""
    return _given_phase(pod, memory) or phase_with_statuses(pod, memory, runtime, all_statuses(pod, memory, runtime))


def phase_with_statuses(pod: Pod, memory: PodMemory, runtime: RuntimePod, statuses: Statuses) -> PodPhase:
    """As `projected_phase`, with the statuses computed already."""
    given = _given_phase(pod, memory)
    if given is not None:
        return given
    is_torn_down = memory.terminated_at is not None and memory.source == "api"
    phase = pod_phase(
        pod,
        statuses.init,
        statuses.regular,
        has_initialized=_has_initialized(pod, runtime),
        is_torn_down=is_torn_down,
        may_restart=_restarts_of(pod, memory, runtime),
    )
    # kubelet: whatever was missing, a pod of the API ends in a terminal phase.
    return "Failed" if is_torn_down and not is_terminal(phase) else phase


def _given_phase(pod: Pod, memory: PodMemory) -> PodPhase | None:
    """Whatever the containers do: a terminal phase sticks, also one that only the pod's source remembers, and a pod
    that failed as a whole has failed."""
    if memory.status is not None and is_terminal(memory.status.phase):
        return memory.status.phase
    match pod.status.phase:
        case "Succeeded" | "Failed":
            return pod.status.phase
        case _:
            return "Failed" if memory.failure is not None else None


def _has_initialized(pod: Pod, runtime: RuntimePod) -> bool:
    """Whether a regular container was ever made in the present sandbox. A sidecar that restarts then doesn't take the
    pod back."""
    sandbox = runtime.sandboxes[0] if runtime.sandboxes else None
    if sandbox is None or not sandbox.ready:
        return False
    names = {container.name for container in pod.spec.containers}
    return any(c.name in names and c.sandbox_id == sandbox.id for c in runtime.containers)


def _restarts_of(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> MayRestart:
    """What the planner would do, were the pod not ending: one that ends keeps its phase."""
    undisturbed = memory if memory.termination is None else replace(memory, termination=None)

    def may_restart(name: str, end: StateTerminated) -> bool:
        newest = runtime.newest(name)
        if newest is None:
            return end.reason == RESTARTING_ALL or restarts_after_exit(pod, name, end.exit_code)
        # Running and shown as waiting: it was started again, and its postStart hook isn't over.
        return newest.state == "running" or should_start(pod, undisturbed, newest)

    return may_restart


def pod_phase(
    pod: Pod,
    init: Sequence[ContainerStatus],
    regular: Sequence[ContainerStatus],
    *,
    has_initialized: bool = False,
    is_torn_down: bool = False,
    may_restart: MayRestart | None = None,
) -> PodPhase:
    """The first rule that fits.

    `has_initialized`: a regular container was made in the present sandbox; `is_torn_down`: the pod was told to end
    and has (never set for static pods: they keep their last phase).
    """
    restarts = may_restart or (lambda name, end: restarts_after_exit(pod, name, end.exit_code))
    sidecar_names = {container.name for container in pod.spec.init_containers if is_sidecar(container)}
    plain = [status for status in init if status.name not in sidecar_names]
    sidecars = [status for status in init if status.name in sidecar_names]
    if any(_has_failed(status, restarts) for status in plain):
        return "Failed"
    if any(end_of(status) is None for status in plain):
        return "Pending"
    if not has_initialized and any(_is_starting(status) for status in sidecars):
        return "Pending"
    counted = [*regular, *(status for status in sidecars if end_of(status) is None)]
    if not regular or any(_waits_for_first_start(status) for status in counted):
        return "Pending"
    if any(_is_unknown(status) for status in counted):
        return "Pending"
    if any(status.state.running is not None for status in counted):
        return "Running"
    ends = [(status.name, end) for status in regular if (end := end_of(status)) is not None]
    if not is_torn_down and any(restarts(name, end) for name, end in ends):
        return "Running"
    return "Succeeded" if _all_succeeded(regular) else "Failed"


def end_of(status: ContainerStatus) -> StateTerminated | None:
    """How a container ended that runs no more; waiting for a restart counts as ended."""
    if status.state.terminated is not None:
        return status.state.terminated
    return status.last_state.terminated if status.state.waiting is not None else None


def _has_failed(status: ContainerStatus, restarts: MayRestart) -> bool:
    """Of a plain init container: it ended badly, and that's final."""
    end = end_of(status)
    return end is not None and end.exit_code != 0 and not restarts(status.name, end)


def _is_starting(status: ContainerStatus) -> bool:
    """Of a sidecar: on its way to its first start, or running and not started. One that has ended is ignored."""
    return end_of(status) is None and not (status.state.running is not None and status.started)


def _waits_for_first_start(status: ContainerStatus) -> bool:
    return status.state.waiting is not None and end_of(status) is None


def _is_unknown(status: ContainerStatus) -> bool:
    return status.state.running is None and end_of(status) is None


def _all_succeeded(regular: Iterable[ContainerStatus]) -> bool:
    """One that waits for a restart has not succeeded, whatever its last exit."""
    ends = [status.state.terminated for status in regular]
    return all(end is not None and end.exit_code == 0 for end in ends)
