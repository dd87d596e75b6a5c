"""RestartAllContainers: a container's exit makes the whole pod start over in its sandbox (lifecycle 3.4)."""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core.model import PodMemory, RuntimeContainer, RuntimeSandbox
from services.podworker.core.plan import Draft, RemoveContainer
from services.podworker.core.restart_rules import asks_for_all
from services.podworker.core.restarts import STOPPED_FOR_RESTART_ALL, ended_by_itself, remembering_attempt
from services.podworker.core.stopping import stop_container
from shared.kube.names import SANDBOX_CONTAINER
from shared.kube.pod import Container, Pod

_WHY = "All containers of the pod are restarted"


def begin_restart_all(draft: Draft, pod: Pod, sandbox: RuntimeSandbox) -> None:
    """Note it when a container of this sandbox has exited as one of its rules says."""
    if draft.memory.restart_all:
        return
    both = (*pod.spec.init_containers, *pod.spec.containers)
    sources = tuple(container.name for container in both if _asks(draft, container, sandbox))
    if sources:
        draft.note(f"{_WHY}: a rule of {', '.join(sources)} says so")
        draft.memory = replace(draft.memory, restart_all=sources)


def _asks(draft: Draft, container: Container, sandbox: RuntimeSandbox) -> bool:
    newest = draft.runtime.newest(container.name)
    if newest is None or newest.state != "exited" or newest.sandbox_id != sandbox.id:
        return False
    return ended_by_itself(draft.memory, newest) and asks_for_all(container, newest.exit_code)


def restart_all(draft: Draft, pod: Pod) -> bool:
    """One step further: all end at once, then all are removed. True once none is left: the pod can start over.

    Ephemeral containers, the sandbox and volumes stay.
    """
    ephemeral = {container.name for container in pod.spec.ephemeral_containers}
    victims = [c for c in draft.runtime.containers if c.name not in ephemeral]
    running = [c for c in victims if c.state == "running"]
    for victim in running:
        # grace 0: no preStop hook, and the least window for the stop signal
        message = f"Stopping container {victim.name}: {_WHY.lower()}"
        stop_container(draft, victim, deadline=draft.now, reason=STOPPED_FOR_RESTART_ALL, message=message)
    if running:
        return False
    draft.memory = _remembering(draft.memory, victims)
    for victim in sorted(victims, key=lambda c: _turn(pod, draft.memory, c)):
        draft.act(RemoveContainer(container_id=victim.id, name=victim.name, reason=_WHY))
    if victims:
        return False
    waiting = {name: w for name, w in draft.memory.waiting.items() if name == SANDBOX_CONTAINER}
    draft.memory = replace(draft.memory, restart_all=(), waiting=waiting)
    return True


def _turn(pod: Pod, memory: PodMemory, container: RuntimeContainer) -> tuple[int, int, int]:
    """Regular containers go first, then init containers, last those that asked for it: each in the order of the spec,
    and its oldest instance first."""
    regular = [c.name for c in pod.spec.containers]
    init = [c.name for c in pod.spec.init_containers]
    group = 2 if container.name in memory.restart_all else int(container.name in init)
    place = [*init, *regular].index(container.name) if container.name in (*init, *regular) else 0
    return group, place, container.attempt


def _remembering(memory: PodMemory, victims: list[RuntimeContainer]) -> PodMemory:
    """What the next attempts count from, and what their last states tell."""
    for victim in victims:
        memory = remembering_attempt(memory, victim)
    return replace(memory, restarted={**memory.restarted, **{v.name: memory.restarts[v.name] for v in victims}})
