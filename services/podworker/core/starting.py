"""How a container is started, and what its start has to wait for (lifecycle 3.4, 3.5)."""

from __future__ import annotations

import math

from msgspec.structs import replace

from services.podworker.core import images
from services.podworker.core.container_config import container_hash
from services.podworker.core.events_text import (
    full_name,
    inspect_failed,
    pull_backed_off,
    restart_backed_off,
    start_failed,
)
from services.podworker.core.model import PodMemory, RuntimeContainer, RuntimeSandbox, Waiting
from services.podworker.core.plan import Draft, PullImage, RemoveContainer, StartContainer
from services.podworker.core.restarts import (
    CRASH_LOOP,
    counts_as_crash,
    crash_backoff_until,
    crash_message,
    image_backoff_until,
    next_attempt,
    next_crash_backoff,
)
from services.podworker.core.results import IMAGE_PULL_BACK_OFF, INVALID_IMAGE_NAME
from shared.kube.pod import Container, Pod
from shared.kube.times import rfc3339

# Their entries' instants are judged with the failure that they count from, which an edit may have made void.
_WITH_OWN_BACKOFF = frozenset({CRASH_LOOP, IMAGE_PULL_BACK_OFF})


def start_container(draft: Draft, pod: Pod, container: Container, sandbox: RuntimeSandbox | None) -> None:
    """Plan the container's start, or say what it waits for. `sandbox` None = the one this plan creates."""
    if draft.held_by:
        draft.note(f"Container {container.name} waits for the postStart hook of container {draft.held_by}")
        return
    newest = draft.runtime.newest(container.name)
    ended = next((c for c in draft.runtime.containers if c.name == container.name and c.state == "exited"), None)
    if newest is not None and newest is ended and not counts_as_crash(draft.memory, ended):
        ended = None
    waits = (
        _is_backing_off(draft, container, ended)
        or _is_waiting_for_image(draft, container)
        or _is_waiting_for_retry(draft, container)
    )
    if waits:
        return
    attempt = _clear_unstarted(draft, container, newest, sandbox)
    why = "has no instance yet" if newest is None else f"is {newest.state}"
    reference = images.with_default_tag(container.image)
    draft.act(
        PullImage(
            container=container.name,
            reference=reference,
            policy=container.image_pull_policy,
            reason=f"Container {container.name} needs image {reference}",
        )
    )
    draft.act(
        StartContainer(
            name=container.name,
            attempt=attempt,
            reason=f"Container {container.name} {why}",
            backoff=next_crash_backoff(draft.memory, ended, draft.now, draft.config),
        )
    )
    if container.lifecycle is not None and container.lifecycle.post_start is not None:
        draft.hold(container.name)


def _clear_unstarted(
    draft: Draft, container: Container, newest: RuntimeContainer | None, sandbox: RuntimeSandbox | None
) -> int:
    """The attempt to start. An instance that was created and never started is adopted by its name where it
    fits, else it goes first; one in an unknown state goes as well."""
    if newest is None or newest.state not in ("created", "unknown"):
        return next_attempt(draft.memory, draft.runtime, container.name)
    fits = (
        newest.state == "created"
        and sandbox is not None
        and newest.sandbox_id == sandbox.id
        and newest.hash == container_hash(container, draft.memory.source)
    )
    if not fits:
        reason = f"Container {container.name} was left in state {newest.state}"
        draft.act(RemoveContainer(container_id=newest.id, name=newest.name, reason=reason))
    if newest.state == "created":
        return newest.attempt
    return next_attempt(draft.memory, draft.runtime, container.name)


def _is_backing_off(draft: Draft, container: Container, ended: RuntimeContainer | None) -> bool:
    until = crash_backoff_until(draft.memory, ended, draft.now, draft.config)
    if until is None:
        return False
    memory = draft.memory
    pod = full_name(memory.namespace, memory.name, memory.uid)
    message = crash_message(memory.backoffs[container.name].delay, container.name, pod)
    if _wait(draft, container.name, CRASH_LOOP, message, until):
        draft.tell(restart_backed_off(container.name, pod, until - draft.now))
    return True


def _is_waiting_for_image(draft: Draft, container: Container) -> bool:
    invalid = images.invalid_image_message(container.image)
    if invalid is not None:
        if _wait(draft, container.name, INVALID_IMAGE_NAME, invalid, None):
            draft.tell(inspect_failed(container.name, invalid))
            draft.tell(start_failed(container.name, INVALID_IMAGE_NAME))
        return True
    reference = images.with_default_tag(container.image)
    until = image_backoff_until(draft.memory, reference, draft.now)
    if until is None or container.image_pull_policy == "Never":
        return False
    message = images.back_off_message(reference, draft.memory.image_backoffs[reference].error)
    if _wait(draft, container.name, IMAGE_PULL_BACK_OFF, message, until):
        draft.tell(pull_backed_off(container.name, reference, until - draft.now))
        draft.tell(start_failed(container.name, IMAGE_PULL_BACK_OFF))
    return True


def _is_waiting_for_retry(draft: Draft, container: Container) -> bool:
    """An error without a back-off of its own (CreateContainerError, ErrImageNeverPull) is looked at again later."""
    failure = draft.memory.waiting.get(container.name)
    if failure is None or failure.retry_at is None or failure.reason in _WITH_OWN_BACKOFF:
        return False
    if draft.now >= failure.retry_at:
        return False
    draft.note(f"Container {container.name}: {failure.reason}, tried again later")
    draft.wake(failure.retry_at)
    return True


def _wait(draft: Draft, name: str, reason: str, message: str, until: float | None) -> bool:
    """Remember why the container isn't started; True when that is new and worth an event."""
    draft.note(f"Container {name}: {reason}")
    if until is not None:
        draft.wake(until)
        # An instant, not what is left: it stays true without a new status each second.
        message = f"{message}; next try at {rfc3339(math.ceil(until))}"
    known = draft.memory.waiting.get(name)
    if known is not None and (known.reason, known.message) == (reason, message):
        return False
    draft.memory = _with_waiting(
        draft.memory, name, Waiting(reason=reason, message=message, at=draft.now, retry_at=until)
    )
    return True


def _with_waiting(memory: PodMemory, name: str, waiting: Waiting) -> PodMemory:
    return replace(memory, waiting={**memory.waiting, name: waiting})
