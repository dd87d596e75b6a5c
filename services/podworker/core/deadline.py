"""activeDeadlineSeconds: how long a pod may be active on the node, counted from its start time (lifecycle 6)."""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import Failure, PodMemory
from services.podworker.core.phase import is_terminal, projected_phase
from services.podworker.core.plan import Draft
from shared.kube.pod import Pod

DEADLINE_EXCEEDED = Failure(
    reason="DeadlineExceeded", message="Pod was active on the node longer than the specified deadline"
)


def deadline_of(pod: Pod, memory: PodMemory, now: float) -> float | None:
    """When the pod's time is over; None = never. A pod whose first status isn't stored yet starts now."""
    seconds = pod.spec.active_deadline_seconds
    if seconds is None:
        return None
    return (now if memory.started_at is None else memory.started_at) + seconds


def fail_at_deadline(draft: Draft, pod: Pod) -> None:
    """Fail an active pod whose time is over: it counts from the start, init containers and back-offs too.

    One whose containers have all ended by now has made it: what they did is its phase.
    """
    memory = draft.memory
    is_active = memory.admitted and memory.rejection is None and memory.termination is None and memory.failure is None
    due = deadline_of(pod, memory, draft.now)
    if due is None or not is_active or is_terminal(projected_phase(pod, memory, draft.runtime)):
        return
    if draft.now < due:
        draft.wake(due)
        return
    draft.memory = replace(memory, failure=DEADLINE_EXCEEDED)
    draft.tell(PodEvent(type="Normal", reason=DEADLINE_EXCEEDED.reason, message=DEADLINE_EXCEEDED.message))
