"""The planner: a pod's definition, its memory and what the engine shows -> what to do now.

Level-triggered: it's asked again after every change and answers "nothing" once all is as it should be. It
never plans two live sandboxes, never starts anything in a pod that terminates, and touches only what
`runtime` lists.
"""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core import stopping
from services.podworker.core.deadline import fail_at_deadline
from services.podworker.core.events_text import sandbox_changed
from services.podworker.core.exits import tell_exits
from services.podworker.core.hooks import without_gone_hooks
from services.podworker.core.init_containers import remove_init_containers
from services.podworker.core.keeping import pod_grace
from services.podworker.core.model import PodMemory, RuntimePod
from services.podworker.core.phase import is_terminal, projected_phase
from services.podworker.core.plan import CreateSandbox, Draft, Plan, StopSandbox, SyncConfig
from services.podworker.core.regular_containers import starts_in_new_sandbox, sync_containers
from services.podworker.core.resize import end_resize
from services.podworker.core.restart_all import begin_restart_all, restart_all
from services.podworker.core.restarts import STOPPED_FOR_SANDBOX
from services.podworker.core.sandboxes import usable_sandbox
from services.podworker.core.starting import start_container
from shared.kube.names import SANDBOX_CONTAINER
from shared.kube.pod import Container, Pod

DEFAULT_CONFIG = SyncConfig()


def compute_pod_actions(
    pod: Pod | None,
    memory: PodMemory,
    runtime: RuntimePod,
    *,
    now: float,
    config: SyncConfig = DEFAULT_CONFIG,
) -> Plan:
    """One look at a pod. `pod` is None for an orphan that is known only by its labels: it can only be ended.

    `runtime` is the newest listing (empty when nothing of the pod is there); `now` in seconds since the
    epoch.
    """
    draft = Draft(memory=_without_gone_stops(memory, runtime), runtime=runtime, now=now, config=config)
    tell_exits(draft, pod)
    if pod is not None:
        fail_at_deadline(draft, pod)
    if memory.termination is not None:
        stopping.terminate(draft)
    elif pod is None:
        draft.note("The pod's definition isn't known")
    elif memory.rejection is not None:
        stopping.end_pod(draft, pod.spec.termination_grace_period_seconds, "The pod was rejected")
    elif not memory.admitted:
        draft.note("The pod isn't admitted yet")
    elif is_terminal(projected_phase(pod, draft.memory, runtime)):
        stopping.end_pod(draft, pod.spec.termination_grace_period_seconds, "The pod has finished")
        stopping.prune(draft)
        draft.memory = replace(draft.memory, is_at_rest=_is_at_rest(runtime))
    else:
        _sync(draft, pod)
    return draft.plan()


def _sync(draft: Draft, pod: Pod) -> None:
    sandbox = usable_sandbox(pod, draft.runtime)
    if sandbox is not None:
        begin_restart_all(draft, pod, sandbox)
    if draft.memory.restart_all and not restart_all(draft, pod):
        return
    if sandbox is None:
        _renew_sandbox(draft, pod)
    else:
        sync_containers(draft, pod, sandbox)
    end_resize(draft, pod)
    stopping.prune(draft)


def _renew_sandbox(draft: Draft, pod: Pod) -> None:
    """Everything ends first, then a new sandbox and its containers start, from the first init container on."""
    if not stopping.end_all(draft, deadline=draft.now + pod_grace(pod), reason=STOPPED_FOR_SANDBOX):
        return
    for sandbox in draft.runtime.sandboxes:
        if sandbox.ready:
            draft.act(StopSandbox(sandbox_id=sandbox.id, reason="The pod's sandbox can't be used any more"))
    starts = _starts_in_new_sandbox(draft, pod)
    if not starts:
        draft.note("The sandbox is gone, and no container may be started again")
        return
    failure = draft.memory.waiting.get(SANDBOX_CONTAINER)
    if failure is not None and failure.retry_at is not None and draft.now < failure.retry_at:
        draft.note("The last try to create the sandbox failed")
        draft.wake(failure.retry_at)
        return
    remove_init_containers(draft, pod)
    attempt = max((s.attempt for s in draft.runtime.sandboxes), default=-1) + 1
    if draft.runtime.sandboxes:
        draft.tell(sandbox_changed())
    reason = "The pod's sandbox changed" if draft.runtime.sandboxes else "The pod has no sandbox"
    draft.act(CreateSandbox(attempt=attempt, reason=reason))
    for container in pod.spec.init_containers[:1] or starts:
        start_container(draft, pod, container, None)


def _starts_in_new_sandbox(draft: Draft, pod: Pod) -> list[Container]:
    """The regular containers that are to run in it, maybe after init containers. kubelet: none in a Never pod once any
    container existed."""
    if pod.spec.restart_policy == "Never" and draft.runtime.containers:
        return []
    newest = draft.runtime.newest
    return [c for c in pod.spec.containers if starts_in_new_sandbox(pod, draft.memory, c.name, newest(c.name))]


def _is_at_rest(runtime: RuntimePod) -> bool:
    has_ended = all(container.state in ("created", "exited") for container in runtime.containers)
    return has_ended and not any(sandbox.ready for sandbox in runtime.sandboxes)


def _without_gone_stops(memory: PodMemory, runtime: RuntimePod) -> PodMemory:
    there = {container.id for container in runtime.containers}
    memory = without_gone_hooks(memory, there)
    if memory.stops.keys() <= there:
        return memory
    return replace(memory, stops={key: stop for key, stop in memory.stops.items() if key in there})
