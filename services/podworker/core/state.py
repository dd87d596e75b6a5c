"""A pod's way from its first sight to its end (lifecycle 2.1): it never goes back."""

from __future__ import annotations

import math

from msgspec.structs import replace

from services.podworker.core.model import PodMemory, PostStart, RuntimePod, Stop, SyncState, Termination
from services.podworker.core.phase import is_terminal
from shared.contracts.pods import PodDesired


def sync_state(memory: PodMemory, runtime: RuntimePod) -> SyncState:
    """Where the pod is.

    waiting: not judged by admission yet. sync: to be kept as its definition says. terminating: told to end,
    and something may still run. terminated: all containers have ended, what they left is being removed.
    finished: nothing is left to do: the row of a pod that was told to end can go; one that has run to its
    end, or was rejected, stays as long as it is desired.
    """
    if memory.termination is not None:
        if memory.terminated_at is None:
            return "terminating"
        return "terminated" if runtime.containers or runtime.sandboxes else "finished"
    if memory.rejection is not None:
        return "finished"
    if not memory.admitted:
        return "waiting"
    return "finished" if is_finished(memory, runtime) else "sync"


def is_finished(memory: PodMemory, runtime: RuntimePod) -> bool:
    """Whether the pod has run to its end by itself: its phase is terminal and nothing of it runs any more."""
    if memory.status is None or not is_terminal(memory.status.phase):
        return False
    return not runtime.running and not any(sandbox.ready for sandbox in runtime.sandboxes)


def nothing_of(memory: PodMemory) -> RuntimePod:
    """The listing of a pod that the engine shows nothing of."""
    return RuntimePod(uid=memory.uid, namespace=memory.namespace, name=memory.name)


def adopt(memory: PodMemory, runtime: RuntimePod, now: float) -> PodMemory:
    """The memory of a pod whose row was lost while its containers weren't: admission was long ago, and what runs has
    had its postStart hook, which the kubelet wouldn't run again either."""
    return replace(
        memory,
        admitted=True,
        started_at=min((sandbox.created_at for sandbox in runtime.sandboxes), default=now),
        post_starts={container.id: PostStart(state="done") for container in runtime.running},
    )


def merge_update(memory: PodMemory | None, desired: PodDesired) -> PodMemory:
    """Take over a desired version. An older one, and any while the pod terminates, changes nothing."""
    if memory is None:
        return PodMemory(
            uid=desired.uid,
            namespace=desired.namespace,
            name=desired.name,
            source=desired.source,
            gen=desired.gen,
            hash=desired.hash,
            seen_at=desired.seen,
        )
    if memory.termination is not None or desired.gen < memory.gen:
        return memory
    if (memory.gen, memory.hash, memory.source) == (desired.gen, desired.hash, desired.source):
        return memory
    return replace(memory, gen=desired.gen, hash=desired.hash, source=desired.source)


def begin_termination(memory: PodMemory, now: float, grace: int, reason: str) -> PodMemory:
    """Tell the pod to end within `grace` seconds (at least 1).

    Told again, only a shorter grace changes anything, counted from now on; set deadlines move earlier, never
    later. Unlike the kubelet's, a stop that is under way heeds that at once: its hook is given up and its signal sent.
    """
    grace = max(1, grace)
    known = memory.termination
    if known is None:
        termination = Termination(at=now, grace=grace, reason=reason)
    elif now + grace < known.at + known.grace:
        # `at` stays the beginning: the grace is what is shortened.
        termination = replace(known, grace=max(1, math.ceil(now + grace - known.at)))
    else:
        return memory
    stops = {key: _not_later(stop, now + grace) for key, stop in memory.stops.items()}
    return replace(memory, termination=termination, stops=stops)


def _not_later(stop: Stop, deadline: float) -> Stop:
    return replace(stop, deadline=deadline) if deadline < stop.deadline else stop


def readmit(memory: PodMemory) -> PodMemory:
    """A rejected file or URL pod that never had a container is to be judged again, as if it were new.

    Its start time stays. Any other pod is returned unchanged, for a terminal phase is final.
    """
    if memory.rejection is None or memory.source == "api" or memory.restarts:
        return memory
    return replace(memory, rejection=None, admitted=False, status=None)


def rebase(memory: PodMemory, delta: float) -> PodMemory:
    """Move the stored instants that something is counted from by `delta` s, after a reboot or a clock step.

    What remained of a deadline remains. Instants that tell of the past (start time, first sight) stay.
    """
    if delta == 0:
        return memory
    termination, stops = memory.termination, memory.stops
    return replace(
        memory,
        termination=replace(termination, at=termination.at + delta) if termination else None,
        stops={key: _moved_stop(stop, delta) for key, stop in stops.items()},
        post_starts={k: replace(p, begun_at=_moved(p.begun_at, delta)) for k, p in memory.post_starts.items()},
        backoffs={k: replace(b, updated_at=b.updated_at + delta) for k, b in memory.backoffs.items()},
        image_backoffs={k: replace(b, updated_at=b.updated_at + delta) for k, b in memory.image_backoffs.items()},
        waiting={
            key: replace(w, at=w.at + delta, retry_at=_moved(w.retry_at, delta)) for key, w in memory.waiting.items()
        },
    )


def _moved_stop(stop: Stop, delta: float) -> Stop:
    return replace(
        stop,
        deadline=stop.deadline + delta,
        signalled_at=_moved(stop.signalled_at, delta),
        killed_at=_moved(stop.killed_at, delta),
        begun_at=_moved(stop.begun_at, delta),
    )


def _moved(instant: float | None, delta: float) -> float | None:
    return None if instant is None else instant + delta
