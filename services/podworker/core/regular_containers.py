"""With a usable sandbox: which containers run on, end or start (lifecycle 3.2, 3.4)."""

from __future__ import annotations

from services.podworker.core.init_containers import initialization, sync_init_containers
from services.podworker.core.keeping import keep, pod_grace, stop_misplaced
from services.podworker.core.lost_containers import has_ended_for_good
from services.podworker.core.model import PodMemory, RuntimeContainer, RuntimeSandbox
from services.podworker.core.plan import Draft
from services.podworker.core.restarts import is_replaced, should_start
from services.podworker.core.starting import start_container
from services.podworker.core.stopping import end_pod
from shared.kube.pod import Container, Pod


def sync_containers(draft: Draft, pod: Pod, sandbox: RuntimeSandbox) -> None:
    """Ephemeral containers, then init containers, then the regular ones; the pod ends when none is left to run."""
    todo = initialization(pod, draft.memory, draft.runtime, sandbox)
    if todo.progress == "failed":
        end_pod(draft, pod_grace(pod), f"Init container {todo.failed} has failed and isn't started again")
        return
    wanted = [c for c in pod.spec.containers if _is_wanted(draft, pod, c, sandbox)]
    if todo.progress == "initialized" and not wanted:
        end_pod(draft, pod_grace(pod), "No container is left to run")
        return
    stop_misplaced(draft, pod, sandbox)
    _start_ephemeral(draft, pod, sandbox)
    sync_init_containers(draft, pod, sandbox, todo)
    if todo.progress == "initialized":
        for container in wanted:
            _sync_regular(draft, pod, container, sandbox)


def _is_wanted(draft: Draft, pod: Pod, container: Container, sandbox: RuntimeSandbox) -> bool:
    newest = draft.runtime.newest(container.name)
    if newest is None:
        return not has_ended_for_good(pod, draft.memory, container.name)
    if newest.state == "running":
        return True
    if newest.state == "exited" and newest.sandbox_id != sandbox.id:
        return starts_in_new_sandbox(pod, draft.memory, container.name, newest)
    return should_start(pod, draft.memory, newest)


def starts_in_new_sandbox(pod: Pod, memory: PodMemory, name: str, newest: RuntimeContainer | None) -> bool:
    """Whether a regular container is started in a sandbox that came after its newest instance, which doesn't run.

    kubelet: Never starts nothing once a container existed; OnFailure leaves out what has succeeded.
    """
    policy = pod.spec.restart_policy
    if newest is None:
        return not has_ended_for_good(pod, memory, name)
    if newest.state != "exited":
        return True
    if policy == "OnFailure":
        return newest.exit_code != 0 or is_replaced(pod, memory, newest)
    return policy != "Never"


def _sync_regular(draft: Draft, pod: Pod, container: Container, sandbox: RuntimeSandbox) -> None:
    newest = draft.runtime.newest(container.name)
    if newest is None or newest.state != "running":
        start_container(draft, pod, container, sandbox)
    elif newest.sandbox_id == sandbox.id:
        keep(draft, pod, container, newest)


def _start_ephemeral(draft: Draft, pod: Pod, sandbox: RuntimeSandbox) -> None:
    """Once, also before the init containers are done; never again, whatever became of them."""
    for container in pod.spec.ephemeral_containers:
        newest = draft.runtime.newest(container.name)
        is_left = newest is not None and newest.state == "created" and newest.sandbox_id == sandbox.id
        if is_left or (newest is None and container.name not in draft.memory.restarts):
            start_container(draft, pod, container, sandbox)
