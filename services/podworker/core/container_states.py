"""What the engine shows of each container -> v1.ContainerStatus (lifecycle 4.3, 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from services.podworker.core.container_resources import with_resources
from services.podworker.core.hooks import POST_START_HOOK_ERROR
from services.podworker.core.lost_containers import (
    LOST_AT_END,
    NO_STATE,
    STATUS_UNKNOWN,
    default_reason,
    default_waiting,
    lost,
    removed_to_restart_all,
    settled,
    status_without_instance,
)
from services.podworker.core.model import PodMemory, RuntimeContainer, RuntimePod
from services.podworker.core.readiness import is_held_by_post_start, is_ready, is_started
from services.podworker.core.restart_rules import is_plain_init
from services.podworker.core.restarts import ended_at, should_start
from services.podworker.core.results import CONTAINER_CREATING
from shared.kube.pod import Container, Pod, is_sidecar
from shared.kube.status import (
    TERMINAL,
    ContainerState,
    ContainerStatus,
    StateRunning,
    StateTerminated,
    StateWaiting,
)
from shared.kube.times import rfc3339

OOM_EXIT_CODE = 137
MESSAGES_BYTES = 12 * 1024
"""Of all termination messages of a pod; each container may have an equal share (kubelet:
MaxPodTerminationMessageLogLength)."""


class Statuses(NamedTuple):
    init: list[ContainerStatus]
    """In the order of the spec."""
    regular: list[ContainerStatus]
    """By name."""
    ephemeral: list[ContainerStatus]
    """By name. They count for nothing else."""


def all_statuses(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> Statuses:
    """Of all containers of the pod."""
    init = [_sized(_init_status(pod, c, memory, runtime), pod, c, runtime) for c in pod.spec.init_containers]
    regular = [_sized(_status(pod, c, memory, runtime), pod, c, runtime) for c in pod.spec.containers]
    ephemeral = [_status(pod, c, memory, runtime) for c in pod.spec.ephemeral_containers]
    if has_ended(memory, runtime):
        init, regular = settled(pod, init, regular)
    share = MESSAGES_BYTES // max(1, len(init) + len(regular) + len(ephemeral))
    return Statuses(
        init=[_cut(status, share) for status in init],
        regular=sorted((_cut(status, share) for status in regular), key=lambda status: status.name),
        ephemeral=sorted((_cut(status, share) for status in ephemeral), key=lambda status: status.name),
    )


def _sized(status: ContainerStatus, pod: Pod, container: Container, runtime: RuntimePod) -> ContainerStatus:
    return with_resources(status, pod, container, runtime.newest(container.name))


def has_ended(memory: PodMemory, runtime: RuntimePod) -> bool:
    """Whether the pod is over and nothing of it runs any more: told to end, or its phase is terminal."""
    if memory.terminated_at is not None:
        return True
    if memory.status is None or memory.status.phase not in TERMINAL:
        return False
    return not runtime.running and not any(sandbox.ready for sandbox in runtime.sandboxes)


def _init_status(pod: Pod, container: Container, memory: PodMemory, runtime: RuntimePod) -> ContainerStatus:
    """A plain one is ready once it has exited with 0."""
    status = _status(pod, container, memory, runtime)
    if is_sidecar(container):
        return status
    end = status.state.terminated
    return replace(status, ready=end is not None and end.exit_code == 0)


def _status(pod: Pod, container: Container, memory: PodMemory, runtime: RuntimePod) -> ContainerStatus:
    previous = _previous(memory, container.name)
    seen = [c for c in runtime.containers if c.name == container.name]
    if not seen:
        status = status_without_instance(pod, container, memory, runtime, previous)
        return _with_waiting_reason(status, pod, memory, None)
    status = _of_instances(container, memory, seen, previous)
    if is_held_by_post_start(container, seen[0], memory):
        return replace(status, state=_held(pod, memory, seen[0], previous))
    return _with_waiting_reason(status, pod, memory, seen[0])


def _previous(memory: PodMemory, name: str) -> ContainerStatus | None:
    before = memory.status
    if before is None:
        return None
    every = (*before.container_statuses, *before.init_container_statuses, *before.ephemeral_container_statuses)
    return next((status for status in every if status.name == name), None)


def _of_instances(
    container: Container, memory: PodMemory, seen: Sequence[RuntimeContainer], previous: ContainerStatus | None
) -> ContainerStatus:
    """The newest instance is the state, the end of the one before it the last state."""
    newest = seen[0]
    return ContainerStatus(
        name=newest.name,
        state=_state_after(newest, previous),
        last_state=_last_state(seen, memory, previous),
        ready=is_ready(container, newest, memory),
        restart_count=newest.attempt,
        image=newest.image,
        image_id=newest.image_id,
        container_id=_full_id(newest),
        started=is_started(container, newest, memory),
        stop_signal=container.lifecycle.stop_signal if container.lifecycle is not None else "",
    )


def _state_after(newest: RuntimeContainer, previous: ContainerStatus | None) -> ContainerState:
    """kubelet: one that ran, and whose state can't be told any more, has ended."""
    if newest.state != "unknown" or previous is None:
        return state_of(newest)
    end = previous.state.terminated
    was_running = previous.state.running is not None
    return lost(LOST_AT_END) if was_running or (end and end.reason == STATUS_UNKNOWN) else state_of(newest)


def _last_state(
    seen: Sequence[RuntimeContainer], memory: PodMemory, previous: ContainerStatus | None
) -> ContainerState:
    """How the instance before the newest one ended; what was told of it stays when it is removed."""
    newest = seen[0]
    older = next((instance for instance in seen[1:] if instance.state == "exited"), None)
    if older is not None:
        return state_of(older)
    if memory.restarted.get(newest.name) == newest.attempt - 1:
        return removed_to_restart_all()
    if previous is None:
        return NO_STATE
    for state in (previous.state, previous.last_state):
        if state.terminated is not None and state.terminated.container_id != _full_id(newest):
            return state
    return NO_STATE


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


def _held(pod: Pod, memory: PodMemory, newest: RuntimeContainer, previous: ContainerStatus | None) -> ContainerState:
    """Of a container that runs while its postStart hook does: kubelet, what it waited for stays shown."""
    hook = memory.post_starts.get(newest.id)
    if hook is not None and hook.state == "failed":
        return ContainerState(waiting=StateWaiting(reason=POST_START_HOOK_ERROR, message=hook.message))
    if previous is not None and previous.state.waiting is not None and previous.state.waiting.reason:
        return previous.state
    return default_waiting(pod)


def _with_waiting_reason(
    status: ContainerStatus, pod: Pod, memory: PodMemory, newest: RuntimeContainer | None
) -> ContainerStatus:
    """The reason cache: why a container that is to start doesn't. A state that has ended becomes the last."""
    waiting = memory.waiting.get(status.name)
    if waiting is None or not _is_to_start(pod, memory, newest) or _is_over_init(pod, status):
        return status
    last_state = status.state if status.state.terminated is not None else status.last_state
    # How far a pull is comes under the reason that the container would have anyway.
    reason = default_reason(pod) if waiting.reason == CONTAINER_CREATING else waiting.reason
    state = ContainerState(waiting=StateWaiting(reason=reason, message=waiting.message))
    return replace(status, state=state, last_state=last_state, ready=False, started=False)


def _is_to_start(pod: Pod, memory: PodMemory, newest: RuntimeContainer | None) -> bool:
    """In a pod that has failed nothing starts any more; what never ran goes on telling why."""
    is_over = memory.failure is not None or (memory.status is not None and memory.status.phase in TERMINAL)
    return should_start(pod, memory, newest) and (newest is None or not is_over)


def _is_over_init(pod: Pod, status: ContainerStatus) -> bool:
    end = status.state.terminated
    return end is not None and end.exit_code == 0 and is_plain_init(pod, status.name)


def _cut(status: ContainerStatus, share: int) -> ContainerStatus:
    state, last_state = _cut_state(status.state, share), _cut_state(status.last_state, share)
    if state is status.state and last_state is status.last_state:
        return status
    return replace(status, state=state, last_state=last_state)


def _cut_state(state: ContainerState, share: int) -> ContainerState:
    """Bytes, as the kubelet counts; a character isn't cut in its middle."""
    end = state.terminated
    if end is None or len(end.message) * 4 <= share:
        return state
    message = end.message.encode()[:share].decode(errors="ignore")
    return state if message == end.message else replace(state, terminated=replace(end, message=message))
