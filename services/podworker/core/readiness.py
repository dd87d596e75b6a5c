"""Whether a running container counts as started and as ready: what its probes have found, and its postStart hook."""

from __future__ import annotations

from services.podworker.core.model import PodMemory, RuntimeContainer, Verdicts
from shared.kube.pod import Container

NOTHING_FOUND = Verdicts()


def is_held_by_post_start(container: Container, newest: RuntimeContainer, memory: PodMemory) -> bool:
    """A container counts as running only once its postStart hook has succeeded: until then the kubelet goes on showing
    what it was before. One whose hook has failed is being ended."""
    if container.lifecycle is None or container.lifecycle.post_start is None or newest.state != "running":
        return False
    hook = memory.post_starts.get(newest.id)
    return hook is None or hook.state != "done"


def is_started(container: Container, newest: RuntimeContainer, memory: PodMemory) -> bool:
    """Running, and its startup probe, if it has one, has succeeded."""
    if newest.state != "running" or is_held_by_post_start(container, newest, memory):
        return False
    return container.startup_probe is None or _verdicts(memory, newest).startup == "success"


def is_ready(container: Container, newest: RuntimeContainer, memory: PodMemory) -> bool:
    """Started, and its readiness probe, if it has one, succeeds. Of regular containers and sidecars."""
    if not is_started(container, newest, memory):
        return False
    return container.readiness_probe is None or _verdicts(memory, newest).readiness == "success"


def _verdicts(memory: PodMemory, instance: RuntimeContainer) -> Verdicts:
    return memory.verdicts.get(instance.id, NOTHING_FOUND)
