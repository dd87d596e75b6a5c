"""postStart and preStop hooks: which should be under way, and what follows from their ends (lifecycle 6).

Each is run at least once: "running" with nobody running it (its worker has died) is run again.
"""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core.model import PodMemory, PostStart, RuntimeContainer, Waiting
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
        draft.memory = _with_post_start(draft.memory, instance.id, PostStart(state="running"))
        draft.hooks.append(HookRun(container_id=instance.id, name=container.name, kind="postStart", handler=handler))
        draft.note(f"The postStart hook of container {container.name} is under way")


def _stop_for(draft: Draft, container: Container, instance: RuntimeContainer, message: str) -> None:
    waiting = Waiting(reason=POST_START_HOOK_ERROR, message=message, at=draft.now)
    draft.memory = replace(draft.memory, waiting={**draft.memory.waiting, container.name: waiting})
    deadline = draft.now + draft.runtime.grace_seconds
    stop_container(draft, instance, deadline=deadline, reason=STOPPED_FOR_POST_START, message="FailedPostStartHook")


def _with_post_start(memory: PodMemory, container_id: str, post_start: PostStart) -> PodMemory:
    return replace(memory, post_starts={**memory.post_starts, container_id: post_start})
