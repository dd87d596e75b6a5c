"""How containers ended by themselves, told once each: with exit code and cause, and what comes of it."""

from __future__ import annotations

from services.podworker.core.container_states import OOM_EXIT_CODE, end_reason
from services.podworker.core.events_text import child_oom_killed, exited, gone
from services.podworker.core.model import PodMemory, RuntimeContainer
from services.podworker.core.plan import Draft
from services.podworker.core.restarts import should_start
from shared.kube.pod import Container, Pod, is_sidecar
from shared.kube.status import ContainerStatus


def tell_exits(draft: Draft, pod: Pod | None) -> None:
    """Once per container, when its end is first seen: the last status doesn't show it as terminated yet."""
    told = _terminated_ids(draft.memory)
    for container in draft.runtime.containers:
        if container.state != "exited" or f"docker://{container.id}" in told:
            continue
        if container.oom_killed and container.exit_code != OOM_EXIT_CODE:
            draft.tell(child_oom_killed(container.name, container.exit_code))
        # Event Killing has told of the end of those that were stopped, Failed of those that couldn't start.
        if pod is not None and container.id not in draft.memory.stops and not container.cannot_run:
            _tell_exit(draft, pod, container)
    if pod is not None and draft.memory.termination is None and not draft.memory.restart_all:
        _tell_gone(draft)


def _tell_gone(draft: Draft) -> None:
    """Containers that were running at the last look and that somebody else has removed since."""
    there = {f"docker://{container.id}" for container in draft.runtime.containers}
    for status in _statuses(draft.memory):
        if status.state.running is not None and status.container_id not in there:
            draft.tell(gone(status.name))


def _tell_exit(draft: Draft, pod: Pod, ended: RuntimeContainer) -> None:
    definition, is_init = _definition(pod, ended.name)
    if definition is None:
        return
    policy = definition.restart_policy or pod.spec.restart_policy
    if is_init:
        is_restarted = is_sidecar(definition) or (ended.exit_code != 0 and policy != "Never")
    else:
        is_restarted = should_start(pod, draft.memory, ended)
    if ended.exit_code == 0 and not is_restarted:
        return  # it has done its work
    reason = end_reason(ended)
    follows = "it is started again" if is_restarted else "it isn't started again"
    if draft.memory.termination is not None:
        follows = "the pod is ending"
    limit = definition.resources.limits.get("memory", "")
    if reason == "OOMKilled" and limit:
        follows = f"it reached its memory limit of {limit}; {follows}"
    draft.tell(exited(ended.name, ended.exit_code, reason, f"{follows} (restartPolicy {policy})"))


def _definition(pod: Pod, name: str) -> tuple[Container | None, bool]:
    """(the container's definition, whether it is an init container)."""
    for container in pod.spec.init_containers:
        if container.name == name:
            return container, True
    return next((c for c in pod.spec.containers if c.name == name), None), False


def _statuses(memory: PodMemory) -> list[ContainerStatus]:
    if memory.status is None:
        return []
    return [*memory.status.init_container_statuses, *memory.status.container_statuses]


def _terminated_ids(memory: PodMemory) -> set[str]:
    states = [state for status in _statuses(memory) for state in (status.state, status.last_state)]
    return {state.terminated.container_id for state in states if state.terminated is not None}
