"""How containers end: the preStop hook, the stop signal, then SIGKILL at a stored deadline (lifecycle 6).

No waiting here: each look takes a stop one step further, and says when the next step is due.
"""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core.events_text import killing
from services.podworker.core.hook_runs import add_hook, has_slept
from services.podworker.core.hooks_text import pre_stop_late
from services.podworker.core.model import RuntimeContainer, RuntimePod, Stop
from services.podworker.core.plan import Draft, Kill, RemoveContainer, RemoveSandbox, Signal, StopSandbox

TERMINATING = "terminating"
ENDED = "ended"


def stop_container(
    draft: Draft,
    container: RuntimeContainer,
    *,
    deadline: float,
    reason: str,
    message: str = "",
    is_held: bool = False,
) -> None:
    """Take the running container's stop one step further. `deadline` counts unless an earlier one was set before.

    `deadline` is the end of the grace period. When that is over already, there is no preStop; the container has
    min_stop seconds from its signal to SIGKILL in any case. `message` is for people, "" = "Stopping container <name>".
    `is_held`: its signal waits for others, at most until the deadline; its preStop doesn't wait.
    """
    stop = draft.memory.stops.get(container.id)
    if stop is None:
        has_hook = container.pre_stop is not None and draft.now < deadline
        stop = Stop(deadline=deadline, reason=reason, pre_stop="running" if has_hook else "", begun_at=draft.now)
        draft.tell(killing(container.name, message))
    elif deadline < stop.deadline:
        stop = replace(stop, deadline=deadline)
    if stop.pre_stop == "running" and has_slept(draft, container.pre_stop, stop.begun_at):
        stop = replace(stop, pre_stop="done")
    elif stop.pre_stop == "running" and draft.now >= stop.deadline:
        stop = replace(stop, pre_stop="failed")
        draft.tell(pre_stop_late(container.name))
    draft.memory = replace(draft.memory, stops={**draft.memory.stops, container.id: stop})
    if stop.signalled_at is None:
        _before_signal(draft, container, stop, message or f"Stopping container {container.name}", is_held=is_held)
    else:
        _after_signal(draft, container, stop, stop.signalled_at)


def _before_signal(draft: Draft, container: RuntimeContainer, stop: Stop, message: str, *, is_held: bool) -> None:
    if stop.pre_stop == "running" and container.pre_stop is not None:
        add_hook(draft, container.id, container.name, "preStop", container.pre_stop)
        draft.wake(stop.deadline)
    elif is_held and draft.now < stop.deadline:
        draft.note(f"Container {container.name} ends after those that it serves")
        draft.wake(stop.deadline)
    else:
        draft.act(Signal(container_id=container.id, name=container.name, signal="", reason=message))


def _after_signal(draft: Draft, container: RuntimeContainer, stop: Stop, signalled_at: float) -> None:
    # A signal that went out late (after a long preStop, or its worker had gone) leaves the least window all the same.
    due = max(stop.deadline, signalled_at + draft.config.min_stop)
    if stop.killed_at is not None:
        due = stop.killed_at + draft.config.kill_again
    if draft.now >= due:
        draft.act(
            Kill(
                container_id=container.id,
                name=container.name,
                reason=f"Container {container.name} didn't end within its grace period",
            )
        )
        due = draft.now + draft.config.kill_again
    else:
        draft.note(f"Container {container.name} is ending")
    draft.wake(due)


def end_all(draft: Draft, *, deadline: float, reason: str, why: str = "") -> bool:
    """One step further with every container that may still run, all at once; a sidecar's signal comes after the
    regular containers' and the later sidecars' end. True when none is left. `why` is told with each."""
    done = True
    for container in draft.runtime.containers:
        if container.state == "running":
            is_held = _serves_others(draft.runtime, container)
            message = f"Stopping container {container.name}: {why}" if why else ""
            stop_container(draft, container, deadline=deadline, reason=reason, message=message, is_held=is_held)
            done = False
        elif container.state == "unknown":
            draft.act(
                RemoveContainer(
                    container_id=container.id,
                    name=container.name,
                    reason=f"The state of container {container.name} can't be told",
                )
            )
            done = False
    return done


def _serves_others(runtime: RuntimePod, container: RuntimeContainer) -> bool:
    place = container.sidecar
    if place is None:
        return False
    return any(other.sidecar is None or other.sidecar > place for other in runtime.running)


def terminate(draft: Draft) -> None:
    """The pod was told to end: containers first, and once all have ended everything of it goes."""
    termination = draft.memory.termination
    if termination is None:
        return
    why = "the pod is not in any pod source" if termination.reason in ("removed", "orphaned") else ""
    if not end_all(draft, deadline=termination.at + termination.grace, reason=TERMINATING, why=why):
        return
    if draft.memory.terminated_at is None:
        draft.memory = replace(draft.memory, terminated_at=draft.now)
    # Oldest first: the newest is what the final status is told by, should this be interrupted.
    for container in reversed(draft.runtime.containers):
        draft.act(RemoveContainer(container_id=container.id, name=container.name, reason="The pod has ended"))
    for sandbox in reversed(draft.runtime.sandboxes):
        draft.act(RemoveSandbox(sandbox_id=sandbox.id, reason="The pod has ended"))


def end_pod(draft: Draft, grace: float, why: str) -> None:
    """Nothing of the pod is to run any more, but it stays: its dead containers keep logs and exit codes."""
    if end_all(draft, deadline=draft.now + grace, reason=ENDED):
        for sandbox in draft.runtime.sandboxes:
            if sandbox.ready:
                draft.act(StopSandbox(sandbox_id=sandbox.id, reason=why))
    draft.note(why)


def prune(draft: Draft) -> None:
    """One dead instance per container name stays, and the newest sandbox; older ones go."""
    kept: set[str] = set()
    for container in draft.runtime.containers:
        if container.state != "exited":
            continue
        if container.name in kept:
            reason = f"A newer dead instance of container {container.name} is kept"
            draft.act(RemoveContainer(container_id=container.id, name=container.name, reason=reason))
        kept.add(container.name)
    for sandbox in draft.runtime.sandboxes[1:]:
        if not sandbox.ready:
            draft.act(RemoveSandbox(sandbox_id=sandbox.id, reason="A newer sandbox has replaced it"))
