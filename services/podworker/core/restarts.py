"""Whether and when a container is started again (lifecycle 3.4, 3.5), and how delays grow."""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core.hooks import STOPPED_FOR_POST_START
from services.podworker.core.model import Backoff, PodMemory, RuntimeContainer, RuntimePod
from services.podworker.core.plan import SyncConfig
from services.podworker.core.restart_rules import policy_of, restarts_after_exit
from shared.kube.duration import format_seconds
from shared.kube.pod import Pod

CRASH_LOOP = "CrashLoopBackOff"
STOPPED_FOR_DEFINITION = "definition"
STOPPED_FOR_SANDBOX = "sandbox"
STOPPED_FOR_PROBE = "probe"
STOPPED_FOR_RESTART_ALL = "restartAll"
STOPPED_AS_STRAY = "removed"
STOPPED_FOR_RESIZE = "resize"

_NOT_ITS_OWN = (STOPPED_FOR_DEFINITION, STOPPED_FOR_SANDBOX, STOPPED_FOR_RESTART_ALL, STOPPED_FOR_RESIZE)


def is_replaced(pod: Pod, memory: PodMemory, instance: RuntimeContainer) -> bool:
    """Whether we ended this instance to start another: what its exit code says about the workload doesn't
    count.

    kubelet: a changed definition restarts whatever the policy; a lost sandbox restarts all but Never; a failed probe
    all whose policy isn't Never, and rules aren't asked.
    """
    match _stop_reason(memory, instance):
        case "definition" | "restartAll" | "resize":
            return True
        case "sandbox":
            return pod.spec.restart_policy != "Never"
        case "probe":
            return policy_of(pod, instance.name) != "Never"
        case _:
            return False


def counts_as_crash(memory: PodMemory, instance: RuntimeContainer) -> bool:
    """Whether the next start waits for a back-off: not where we ended it for reasons that aren't its own."""
    return _stop_reason(memory, instance) not in _NOT_ITS_OWN


def ended_by_itself(memory: PodMemory, instance: RuntimeContainer) -> bool:
    """Whether its exit code is the workload's own word. A failed postStart hook is the workload's, too."""
    return _stop_reason(memory, instance) in ("", STOPPED_FOR_POST_START)


def _stop_reason(memory: PodMemory, instance: RuntimeContainer) -> str:
    stop = memory.stops.get(instance.id)
    return "" if stop is None else stop.reason


def should_start(pod: Pod, memory: PodMemory, newest: RuntimeContainer | None) -> bool:
    """Whether a container whose newest instance is this one is to be started (now, or after a back-off)."""
    if memory.termination is not None:
        return False
    if newest is None or newest.state in ("created", "unknown"):
        return True
    if newest.state == "running":
        return False
    if _stop_reason(memory, newest) == STOPPED_FOR_PROBE:
        return is_replaced(pod, memory, newest)
    return restarts_after_exit(pod, newest.name, newest.exit_code) or is_replaced(pod, memory, newest)


def ended_at(container: RuntimeContainer) -> float:
    """The instant that an exited instance's back-off counts from; one that never ran ended when it was
    created.
    """
    return container.created_at if container.finished_at is None else container.finished_at


def next_attempt(memory: PodMemory, runtime: RuntimePod, name: str) -> int:
    """One more than the highest attempt that is remembered or seen; 0 for the first."""
    seen = [c.attempt for c in runtime.containers if c.name == name]
    return max([*seen, memory.restarts.get(name, -1)]) + 1


def remembering_attempt(memory: PodMemory, instance: RuntimeContainer) -> PodMemory:
    """Before an instance is removed whose container starts again: its row may have been lost once."""
    highest = max(instance.attempt, memory.restarts.get(instance.name, 0))
    return replace(memory, restarts={**memory.restarts, instance.name: highest})


def grown(
    previous: Backoff | None, event_at: float, now: float, initial: float, maximum: float, reset_after: float
) -> Backoff:
    """The delay after one more failure: the initial one, or twice the last up to the maximum."""
    if previous is None or is_expired(previous, event_at, reset_after):
        return Backoff(delay=min(initial, maximum), updated_at=now)
    return Backoff(delay=min(previous.delay * 2, maximum), updated_at=now)


def is_expired(backoff: Backoff, event_at: float, reset_after: float) -> bool:
    """Whether things went well for so long before the event that its delay starts anew."""
    return event_at - backoff.updated_at > reset_after


def crash_backoff_until(
    memory: PodMemory, ended: RuntimeContainer | None, now: float, config: SyncConfig
) -> float | None:
    """Until when a start of the container has to wait, or None when it may start now.

    `ended` is its newest exited instance. An end that seems to lie in the future (the clock was set back)
    counts as now; what was promised once (the waiting entry's instant) is not moved later.
    """
    if ended is None:
        return None
    backoff = memory.backoffs.get(ended.name)
    if backoff is None or is_expired(backoff, ended_at(ended), config.reset_after):
        return None
    due = min(ended_at(ended), now) + backoff.delay
    waiting = memory.waiting.get(ended.name)
    if waiting is not None and waiting.reason == CRASH_LOOP and waiting.retry_at is not None:
        due = min(due, waiting.retry_at)
    return due if now < due else None


def next_crash_backoff(
    memory: PodMemory, ended: RuntimeContainer | None, now: float, config: SyncConfig
) -> Backoff | None:
    """What is to be remembered when a start is tried now; None for a first start."""
    if ended is None:
        return None
    previous = memory.backoffs.get(ended.name)
    return grown(previous, ended_at(ended), now, config.crash_initial, config.crash_max, config.reset_after)


def crash_message(delay: float, container: str, pod: str) -> str:
    """The message of waiting reason CrashLoopBackOff; `pod` as events_text.full_name writes it."""
    return f"back-off {format_seconds(delay)} restarting failed container={container} pod={pod}"


def image_backoff_until(memory: PodMemory, reference: str, now: float) -> float | None:
    """Until when the image isn't asked for again, or None. Per pod and reference, as in the kubelet."""
    backoff = memory.image_backoffs.get(reference)
    if backoff is None:
        return None
    until = min(backoff.updated_at, now) + backoff.delay
    return until if now < until else None
