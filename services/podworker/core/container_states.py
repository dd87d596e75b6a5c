"""What the engine shows of each container -> v1.ContainerStatus (lifecycle 4.3, 4.4)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from services.podworker.core.model import PodMemory, RuntimeContainer, RuntimePod
from services.podworker.core.restarts import ended_at, should_start
from services.podworker.core.results import CONTAINER_CREATING, POD_INITIALIZING
from shared.kube.pod import Container, Pod
from shared.kube.status import (
    ContainerState,
    ContainerStatus,
    StateRunning,
    StateTerminated,
    StateWaiting,
)
from shared.kube.times import rfc3339

STATUS_UNKNOWN = "ContainerStatusUnknown"
STATUS_UNKNOWN_EXIT_CODE = 137
OOM_EXIT_CODE = 137
_LOST_WHILE_RUNNING = "The container could not be located when the pod was deleted.  The container used to be Running"
_LOST_AT_END = "The container could not be located when the pod was terminated"
_NOTHING = ContainerState()


def container_statuses(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> list[ContainerStatus]:
    """Of the regular containers, by name."""
    statuses = [_status(pod, c, memory, runtime) for c in pod.spec.containers]
    return sorted(statuses, key=lambda status: status.name)


def init_container_statuses(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> list[ContainerStatus]:
    """Of the init containers, in the order of the spec. A plain one is ready once it has exited with 0."""
    statuses = [_status(pod, c, memory, runtime) for c in pod.spec.init_containers]
    return [replace(status, ready=_has_completed(status.state)) for status in statuses]


def _has_completed(state: ContainerState) -> bool:
    return state.terminated is not None and state.terminated.exit_code == 0


def _status(pod: Pod, container: Container, memory: PodMemory, runtime: RuntimePod) -> ContainerStatus:
    previous = _previous(memory, container.name)
    seen = [c for c in runtime.containers if c.name == container.name][:2]
    status = _of_instances(seen) if seen else _without_instance(pod, container, memory, previous)
    status = _with_waiting_reason(status, pod, memory, seen[0] if seen else None)
    return _settled(status, memory, previous)


def _previous(memory: PodMemory, name: str) -> ContainerStatus | None:
    if memory.status is None:
        return None
    both = (*memory.status.container_statuses, *memory.status.init_container_statuses)
    return next((status for status in both if status.name == name), None)


def _of_instances(seen: Sequence[RuntimeContainer]) -> ContainerStatus:
    """The newest instance is the state, the one before it the last state."""
    newest = seen[0]
    running = newest.state == "running"
    return ContainerStatus(
        name=newest.name,
        state=state_of(newest),
        last_state=state_of(seen[1]) if len(seen) > 1 else _NOTHING,
        ready=running,
        restart_count=newest.attempt,
        image=newest.image,
        image_id=newest.image_id,
        container_id=_full_id(newest),
        started=running,
    )


def _full_id(container: RuntimeContainer) -> str:
    return f"docker://{container.id}"


def state_of(container: RuntimeContainer) -> ContainerState:
    """One instance's state. One that was created and not started, or can't be told, waits."""
    match container.state:
        case "running":
            return ContainerState(running=StateRunning(started_at=_time(container.started_at)))
        case "exited":
            return ContainerState(terminated=_terminated(container))
        case "created" | "unknown":
            return ContainerState(waiting=StateWaiting())


def _terminated(container: RuntimeContainer) -> StateTerminated:
    started = container.created_at if container.started_at is None else container.started_at
    return StateTerminated(
        exit_code=container.exit_code,
        reason=end_reason(container),
        message=_end_message(container),
        started_at=_time(started),
        finished_at=_time(ended_at(container)),
        container_id=_full_id(container),
    )


def end_reason(container: RuntimeContainer) -> str:
    """Of a container that has exited."""
    if container.cannot_run:
        return "ContainerCannotRun"
    # Docker sets the flag also when only a child was killed: the code tells that it was the main process.
    if container.oom_killed and container.exit_code == OOM_EXIT_CODE:
        return "OOMKilled"
    return "Completed" if container.exit_code == 0 else "Error"


def _end_message(container: RuntimeContainer) -> str:
    return ": ".join(part for part in (container.error, container.termination_message) if part)


def _time(instant: float | None) -> str | None:
    return None if instant is None else rfc3339(instant)


def _without_instance(
    pod: Pod, container: Container, memory: PodMemory, previous: ContainerStatus | None
) -> ContainerStatus:
    """Nothing of the container is there: it wasn't made yet, or somebody removed it."""
    if previous is not None and previous.state.terminated is not None:
        return previous
    status = ContainerStatus(
        name=container.name,
        state=ContainerState(waiting=StateWaiting(reason=_default_reason(pod))),
        last_state=_NOTHING if previous is None else previous.last_state,
        ready=False,
        restart_count=0 if previous is None else previous.restart_count,
        image=container.image,
        image_id="",
        started=False,
    )
    if previous is None or previous.state.running is None:
        return status
    # kubelet: a container that ran and vanished counts as ended, else the pod would fall back to Pending.
    lost = ContainerState(terminated=_unknown_end(_LOST_WHILE_RUNNING))
    ending = memory.termination is not None
    return replace(status, last_state=lost, restart_count=status.restart_count + (0 if ending else 1))


def _default_reason(pod: Pod) -> str:
    return POD_INITIALIZING if pod.spec.init_containers else CONTAINER_CREATING


def _unknown_end(message: str) -> StateTerminated:
    return StateTerminated(
        exit_code=STATUS_UNKNOWN_EXIT_CODE,
        reason=STATUS_UNKNOWN,
        message=message,
        started_at=None,
        finished_at=None,
    )


def _with_waiting_reason(
    status: ContainerStatus, pod: Pod, memory: PodMemory, newest: RuntimeContainer | None
) -> ContainerStatus:
    """The reason cache: why a container that is to start doesn't. A state that has ended becomes the last."""
    waiting = memory.waiting.get(status.name)
    if waiting is None or not should_start(pod, memory, newest):
        return status
    last_state = status.state if status.state.terminated is not None else status.last_state
    state = ContainerState(waiting=StateWaiting(reason=waiting.reason, message=waiting.message))
    return replace(status, state=state, last_state=last_state, ready=False, started=False)


def _settled(status: ContainerStatus, memory: PodMemory, previous: ContainerStatus | None) -> ContainerStatus:
    """Once the pod has ended no container may seem to wait: kubelet, for pods that had been initialized."""
    ended = memory.terminated_at is not None
    if not ended or status.state.terminated is not None or previous is None or not _was_initialized(memory):
        return status
    return replace(status, state=ContainerState(terminated=_unknown_end(_LOST_AT_END)))


def _was_initialized(memory: PodMemory) -> bool:
    condition = memory.status.condition("Initialized") if memory.status is not None else None
    return condition is not None and condition.status == "True"
