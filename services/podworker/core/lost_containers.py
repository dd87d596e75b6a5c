"""The status of a container that the engine doesn't show: not made yet, removed, or lost (lifecycle 3.3, 4.3, 4.4)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from services.podworker.core.model import PodMemory, RuntimePod
from services.podworker.core.restart_rules import is_plain_init, restarts_after_exit
from services.podworker.core.results import CONTAINER_CREATING, POD_INITIALIZING
from shared.kube.pod import Container, Pod, is_sidecar
from shared.kube.status import ContainerState, ContainerStatus, StateTerminated, StateWaiting

STATUS_UNKNOWN = "ContainerStatusUnknown"
RESTARTING_ALL = "RestartingAllContainers"
KILLED_EXIT_CODE = 137
LOST_WHILE_RUNNING = "The container could not be located when the pod was deleted.  The container used to be Running"
LOST_AT_END = "The container could not be located when the pod was terminated"
REMOVED_TO_RESTART_ALL = "The container is removed because RestartAllContainers in place"
INIT_IS_LONG_OVER = (
    "Unable to get init container status from container runtime and pod has been initialized, "
    "treat it as exited normally"
)
NO_STATE = ContainerState()


def default_reason(pod: Pod) -> str:
    """Why a container wasn't made yet, while nothing else is known of it."""
    return POD_INITIALIZING if pod.spec.init_containers else CONTAINER_CREATING


def default_waiting(pod: Pod) -> ContainerState:
    return ContainerState(waiting=StateWaiting(reason=default_reason(pod)))


def status_without_instance(
    pod: Pod, container: Container, memory: PodMemory, runtime: RuntimePod, previous: ContainerStatus | None
) -> ContainerStatus:
    """What is shown of a container that has no instance. `previous` is its status before this look."""
    if starts_over(memory, container.name):
        return _starting_over(pod, container, memory)
    if previous is not None and previous.state.terminated is not None:
        return previous
    status = _waiting(pod, container, previous)
    if is_plain_init(pod, container.name) and _has_regular(pod, runtime):
        return replace(status, state=ContainerState(terminated=_end(0, "Completed", INIT_IS_LONG_OVER)))
    if previous is None or previous.state.running is None:
        return status
    # kubelet: a container that ran and vanished counts as ended, else the pod would fall back to Pending.
    ending = memory.termination is not None
    return replace(status, last_state=lost(LOST_WHILE_RUNNING), restart_count=status.restart_count + (not ending))


def has_ended_for_good(pod: Pod, memory: PodMemory, name: str) -> bool:
    """Of a regular container without an instance: it was seen to end, isn't started again for that, and whoever removed
    its remains (`docker container prune` does) doesn't make it run once more. kubelet: it would."""
    if memory.status is None or starts_over(memory, name):
        return False
    ends = [s.state.terminated for s in memory.status.container_statuses if s.name == name]
    return any(
        e is not None and e.reason != STATUS_UNKNOWN and not restarts_after_exit(pod, name, e.exit_code) for e in ends
    )


def starts_over(memory: PodMemory, name: str) -> bool:
    """Whether all containers start over and this one was removed for it and not started since."""
    removed = memory.restarted.get(name)
    return removed is not None and memory.restarts.get(name, removed) <= removed


def removed_to_restart_all() -> ContainerState:
    return ContainerState(terminated=_end(KILLED_EXIT_CODE, RESTARTING_ALL, REMOVED_TO_RESTART_ALL))


def lost(message: str) -> ContainerState:
    """The end of a container that nobody saw."""
    return ContainerState(terminated=_end(KILLED_EXIT_CODE, STATUS_UNKNOWN, message))


def settled(
    pod: Pod, init: Sequence[ContainerStatus], regular: Sequence[ContainerStatus]
) -> tuple[list[ContainerStatus], list[ContainerStatus]]:
    """Once a pod has ended no container may seem to wait or run.

    kubelet: in a pod that had been initialized whatever hasn't ended is lost; of the init containers those up to the
    last that ever started.
    """
    if _was_initialized(pod, init, regular):
        regular = [_lost_at_end(status) for status in regular]
    started = max((index for index, status in enumerate(init) if _has_started(status)), default=0)
    return [_lost_at_end(s) if index <= started else s for index, s in enumerate(init)], list(regular)


def _waiting(pod: Pod, container: Container, previous: ContainerStatus | None) -> ContainerStatus:
    return ContainerStatus(
        name=container.name,
        state=default_waiting(pod),
        last_state=NO_STATE if previous is None else previous.last_state,
        ready=False,
        restart_count=0 if previous is None else previous.restart_count,
        image=container.image,
        image_id="",
        started=False,
    )


def _starting_over(pod: Pod, container: Container, memory: PodMemory) -> ContainerStatus:
    state = default_waiting(pod)
    before = memory.status.condition("AllContainersRestarting") if memory.status is not None else None
    if memory.restart_all or (before is not None and before.status == "True"):
        state = ContainerState(waiting=StateWaiting(reason=RESTARTING_ALL, message=REMOVED_TO_RESTART_ALL))
    return replace(
        _waiting(pod, container, None),
        state=state,
        last_state=removed_to_restart_all(),
        restart_count=memory.restarted[container.name] + 1,
    )


def _end(exit_code: int, reason: str, message: str) -> StateTerminated:
    return StateTerminated(exit_code=exit_code, reason=reason, message=message, started_at=None, finished_at=None)


def _has_regular(pod: Pod, runtime: RuntimePod) -> bool:
    names = {container.name for container in pod.spec.containers}
    return any(container.name in names for container in runtime.containers)


def _has_started(status: ContainerStatus) -> bool:
    return status.state.waiting is None or status.last_state.terminated is not None


def _lost_at_end(status: ContainerStatus) -> ContainerStatus:
    if status.state.terminated is not None:
        return status
    return replace(status, state=lost(LOST_AT_END), ready=False, started=False)


def _was_initialized(pod: Pod, init: Sequence[ContainerStatus], regular: Sequence[ContainerStatus]) -> bool:
    if any(_has_started(status) for status in regular):
        return True
    sidecars = {container.name for container in pod.spec.init_containers if is_sidecar(container)}
    return all(status.started if status.name in sidecars else _has_succeeded(status) for status in init)


def _has_succeeded(status: ContainerStatus) -> bool:
    return status.state.terminated is not None and status.state.terminated.exit_code == 0
