"""How containers end: the stop signal, then SIGKILL at a stored deadline (lifecycle 6). No waiting here."""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core.events_text import killing
from services.podworker.core.model import RuntimeContainer, Stop
from services.podworker.core.plan import Draft, Kill, RemoveContainer, RemoveSandbox, Signal, StopSandbox

TERMINATING = "terminating"
ENDED = "ended"


def stop_container(
    draft: Draft, container: RuntimeContainer, *, deadline: float, reason: str, message: str = ""
) -> None:
    """Take the container's stop one step further. `deadline` counts unless an earlier one was set before.

    `message` is for people, "" = "Stopping container <name>".
    """
    stop = draft.memory.stops.get(container.id)
    if stop is None:
        stop = Stop(deadline=deadline, reason=reason)
        draft.tell(killing(container.name, message))
    elif deadline < stop.deadline:
        stop = replace(stop, deadline=deadline)
    draft.memory = replace(draft.memory, stops={**draft.memory.stops, container.id: stop})
    _next_step(draft, container, stop, message or f"Stopping container {container.name}")


def _next_step(draft: Draft, container: RuntimeContainer, stop: Stop, message: str) -> None:
    if stop.signalled_at is None:
        draft.act(Signal(container_id=container.id, name=container.name, signal="", reason=message))
        return
    # A signal that went out late (its worker had gone) leaves the least window all the same.
    due = max(stop.deadline, stop.signalled_at + draft.config.min_stop)
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


def end_all(draft: Draft, *, deadline: float, reason: str) -> bool:
    """One step further with every container that may still run, all at once. True when none is left."""
    done = True
    for container in draft.runtime.containers:
        if container.state == "running":
            stop_container(draft, container, deadline=deadline, reason=reason)
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


def terminate(draft: Draft) -> None:
    """The pod was told to end: containers first, and once all have ended everything of it goes."""
    termination = draft.memory.termination
    if termination is None:
        return
    deadline = max(termination.at + termination.grace, draft.now + draft.config.min_stop)
    if not end_all(draft, deadline=deadline, reason=TERMINATING):
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
    deadline = draft.now + max(grace, draft.config.min_stop)
    if end_all(draft, deadline=deadline, reason=ENDED):
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
