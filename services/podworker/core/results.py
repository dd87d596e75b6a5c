"""What came of an action, put into the pod's memory. The executor calls these after each action."""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core.images import progress_message
from services.podworker.core.model import Backoff, PodMemory, Waiting
from services.podworker.core.plan import (
    Action,
    CreateSandbox,
    Kill,
    PullImage,
    Signal,
    StartContainer,
    SyncConfig,
)
from services.podworker.core.restarts import grown, image_backoff_until
from shared.kube.names import SANDBOX_CONTAINER

CONTAINER_CREATING = "ContainerCreating"
POD_INITIALIZING = "PodInitializing"
ERR_IMAGE_PULL = "ErrImagePull"
ERR_IMAGE_NEVER_PULL = "ErrImageNeverPull"
IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
INVALID_IMAGE_NAME = "InvalidImageName"
RUN_CONTAINER_ERROR = "RunContainerError"
CREATE_CONTAINER_CONFIG_ERROR = "CreateContainerConfigError"
FAILED_CREATE_POD_SANDBOX = "FailedCreatePodSandBox"
FAILED_MOUNT = "FailedMount"
"""Of the pod's volumes: kept for the sandbox, which waits for them."""

# Reasons that describe the state of affairs and not a failure of a registry: they have no growing delay.
_WITHOUT_IMAGE_BACKOFF = frozenset({ERR_IMAGE_NEVER_PULL, INVALID_IMAGE_NAME, "ImageInspectError"})


def record_done(memory: PodMemory, action: Action, *, now: float) -> PodMemory:
    """Any action that succeeded."""
    match action:
        case StartContainer():
            return record_started(memory, action)
        case PullImage():
            return record_pulled(memory, action)
        case Signal():
            return _with_stop(memory, action.container_id, signalled_at=now)
        case Kill():
            return _with_stop(memory, action.container_id, killed_at=now)
        case CreateSandbox():
            return _without_waiting(memory, SANDBOX_CONTAINER)
        case _:
            return memory


def record_started(memory: PodMemory, action: StartContainer) -> PodMemory:
    """The container runs (or ran: it may have exited already)."""
    return _tried(_without_waiting(memory, action.name), action)


def record_start_failed(
    memory: PodMemory, action: StartContainer, reason: str, message: str, *, now: float, config: SyncConfig
) -> PodMemory:
    """A create or start that the engine refused.

    After RunContainerError there is an exited instance, which the restart policy and the crash back-off
    judge; after any other there is none, so the next attempt waits for the plain retry interval.
    """
    waiting = Waiting(
        reason=reason,
        message=message,
        at=now,
        retry_at=None if reason == RUN_CONTAINER_ERROR else now + config.retry,
    )
    if reason == RUN_CONTAINER_ERROR:
        memory = _tried(memory, action)
    return _with_waiting(memory, action.name, waiting)


def _tried(memory: PodMemory, action: StartContainer) -> PodMemory:
    """An instance of that attempt exists now."""
    backoffs = memory.backoffs
    if action.backoff is not None:
        backoffs = {**backoffs, action.name: action.backoff}
    highest = max(action.attempt, memory.restarts.get(action.name, 0))
    return replace(memory, backoffs=backoffs, restarts={**memory.restarts, action.name: highest})


def record_pulled(memory: PodMemory, action: PullImage) -> PodMemory:
    """The image is there: its back-off and whatever was said about pulling it are forgotten."""
    backoffs = {ref: b for ref, b in memory.image_backoffs.items() if ref != action.reference}
    memory = replace(memory, image_backoffs=backoffs)
    waiting = memory.waiting.get(action.container)
    is_progress = waiting is not None and waiting.reason in (CONTAINER_CREATING, POD_INITIALIZING)
    return _without_waiting(memory, action.container) if is_progress else memory


def record_pull_failed(
    memory: PodMemory, action: PullImage, reason: str, message: str, *, now: float, config: SyncConfig
) -> PodMemory:
    """A pull that ended without an image, or one that policy Never forbids.

    After ErrImagePull, RegistryUnavailable...: the next pull of this reference waits 10 s, twice that, ... up
    to 300 s. After ErrImageNeverPull it's simply looked again.
    """
    retry_at: float | None = now + config.retry
    if reason not in _WITHOUT_IMAGE_BACKOFF:
        backoff = _image_backoff(memory, action.reference, now, config)
        backoff = replace(backoff, error=f"{reason}: {message}")
        memory = replace(memory, image_backoffs={**memory.image_backoffs, action.reference: backoff})
        # The reference's own back-off decides: a changed image is tried at once.
        retry_at = None
    waiting = Waiting(reason=reason, message=message, at=now, retry_at=retry_at)
    return _with_waiting(memory, action.container, waiting)


def _image_backoff(memory: PodMemory, reference: str, now: float, config: SyncConfig) -> Backoff:
    """The grown delay; a second container that failed on the image in the same plan makes it grow no further."""
    previous = memory.image_backoffs.get(reference)
    if previous is not None and image_backoff_until(memory, reference, now) is not None:
        return previous
    return grown(previous, now, now, config.image_initial, config.image_max, config.reset_after)


def record_pull_progress(memory: PodMemory, action: PullImage, current: int, total: int, *, now: float) -> PodMemory:
    """How far the pull is, in bytes. For the status only: not worth a write to the disk."""
    message = progress_message(action.reference, current, total)
    return _with_waiting(memory, action.container, Waiting(reason=CONTAINER_CREATING, message=message, at=now))


def record_sandbox_failed(memory: PodMemory, reason: str, message: str, *, now: float, config: SyncConfig) -> PodMemory:
    """The sandbox couldn't be made: tried again after the plain retry interval."""
    waiting = Waiting(reason=reason, message=message, at=now, retry_at=now + config.retry)
    return _with_waiting(memory, SANDBOX_CONTAINER, waiting)


def retry_configuration(memory: PodMemory) -> PodMemory:
    """What waits for a ConfigMap, a Secret or a volume may be tried at once: something has changed."""
    freed = {
        name: replace(waiting, retry_at=None)
        for name, waiting in memory.waiting.items()
        if waiting.reason in (CREATE_CONTAINER_CONFIG_ERROR, FAILED_MOUNT, CONTAINER_CREATING, POD_INITIALIZING)
        and waiting.retry_at is not None
    }
    return replace(memory, waiting={**memory.waiting, **freed}) if freed else memory


def _with_waiting(memory: PodMemory, name: str, waiting: Waiting) -> PodMemory:
    return replace(memory, waiting={**memory.waiting, name: waiting})


def _without_waiting(memory: PodMemory, name: str) -> PodMemory:
    if name not in memory.waiting:
        return memory
    return replace(memory, waiting={key: w for key, w in memory.waiting.items() if key != name})


def _with_stop(
    memory: PodMemory,
    container_id: str,
    *,
    signalled_at: float | None = None,
    killed_at: float | None = None,
) -> PodMemory:
    stop = memory.stops.get(container_id)
    if stop is None:
        return memory
    changed = replace(
        stop,
        signalled_at=stop.signalled_at if signalled_at is None else signalled_at,
        killed_at=stop.killed_at if killed_at is None else killed_at,
    )
    return replace(memory, stops={**memory.stops, container_id: changed})
