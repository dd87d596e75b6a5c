"""postStart and preStop hooks: which should be under way, and what follows from their ends (lifecycle 6).

Each is run at least once: "running" with nobody running it (its worker has died) is run again.
"""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core.events_text import PodEvent
from services.podworker.core.hook_labels import with_port_number
from services.podworker.core.hook_runs import add_hook, has_slept
from services.podworker.core.hooks_text import post_start_failed, pre_stop_failed
from services.podworker.core.model import HookState, PodMemory, PostStart, RuntimeContainer, Waiting
from services.podworker.core.plan import Draft, HookRun
from services.podworker.core.stopping import stop_container
from shared.kube.pod import Container

POST_START_HOOK_ERROR = "PostStartHookError"
STOPPED_FOR_POST_START = "postStart"


def post_start_pending(container: Container, instance: RuntimeContainer, memory: PodMemory) -> bool:
    """Whether this running instance's postStart hook isn't over yet: the next container's start waits for it.

    A failed one is over: kubelet starts the later containers all the same.
    """
    if container.lifecycle is None or container.lifecycle.post_start is None or instance.state != "running":
        return False
    known = memory.post_starts.get(instance.id)
    return known is None or known.state not in ("done", "failed")


def sync_post_start(draft: Draft, container: Container, instance: RuntimeContainer) -> None:
    """For a running instance: keep its postStart hook going; when that has failed, stop the container.

    Does nothing for an instance that is being stopped already: take its stop further instead.
    """
    handler = container.lifecycle.post_start if container.lifecycle is not None else None
    if handler is None or instance.state != "running" or instance.id in draft.memory.stops:
        return
    known = draft.memory.post_starts.get(instance.id)
    if known is not None and known.state == "failed":
        _stop_for(draft, container, instance, known.message)
    elif post_start_pending(container, instance, draft.memory):
        begun_at = draft.now if known is None or known.begun_at is None else known.begun_at
        state: HookState = "done" if has_slept(draft, handler, begun_at) else "running"
        draft.memory = _with_post_start(draft.memory, instance.id, PostStart(state=state, begun_at=begun_at))
        if state == "running":
            add_hook(draft, instance.id, container.name, "postStart", with_port_number(handler, container.ports))


def _stop_for(draft: Draft, container: Container, instance: RuntimeContainer, message: str) -> None:
    waiting = Waiting(reason=POST_START_HOOK_ERROR, message=message, at=draft.now)
    draft.memory = replace(draft.memory, waiting={**draft.memory.waiting, container.name: waiting})
    deadline = draft.now + draft.runtime.grace_seconds
    stop_container(draft, instance, deadline=deadline, reason=STOPPED_FOR_POST_START, message="FailedPostStartHook")


def _with_post_start(memory: PodMemory, container_id: str, post_start: PostStart) -> PodMemory:
    return replace(memory, post_starts={**memory.post_starts, container_id: post_start})


def record_hook_end(memory: PodMemory, run: HookRun, error: str) -> tuple[PodMemory, tuple[PodEvent, ...]]:
    """A hook has ended; `error` "" = well. The memory after it, and what is to be told.

    One that isn't waited for any more (its container is gone, its grace period is over) changes nothing.
    """
    state: HookState = "failed" if error else "done"
    if run.kind == "postStart":
        known = memory.post_starts.get(run.container_id)
        if known is None or known.state != "running":
            return memory, ()
        memory = _with_post_start(memory, run.container_id, replace(known, state=state, message=error))
        return memory, (post_start_failed(run.name),) if error else ()
    stop = memory.stops.get(run.container_id)
    if stop is None or stop.pre_stop != "running":
        return memory, ()
    stops = {**memory.stops, run.container_id: replace(stop, pre_stop=state)}
    return replace(memory, stops=stops), (pre_stop_failed(run.name),) if error else ()


def without_gone_hooks(memory: PodMemory, present: set[str]) -> PodMemory:
    """Forget the postStart hooks of containers that aren't there any more; `present` are the others' ids."""
    if memory.post_starts.keys() <= present:
        return memory
    return replace(memory, post_starts={key: p for key, p in memory.post_starts.items() if key in present})
