"""Containers that run: whether they may run on, and what the start of later ones waits for (lifecycle 3.3, 3.4)."""

from __future__ import annotations

from typing import NamedTuple

from services.podworker.core import hooks
from services.podworker.core.container_config import container_hash
from services.podworker.core.model import RuntimeContainer, RuntimeSandbox, Verdicts
from services.podworker.core.plan import Draft
from services.podworker.core.resize import resize_restarts, sync_resize
from services.podworker.core.restart_rules import policy_of
from services.podworker.core.restarts import (
    STOPPED_AS_STRAY,
    STOPPED_FOR_DEFINITION,
    STOPPED_FOR_PROBE,
    STOPPED_FOR_RESIZE,
    STOPPED_FOR_SANDBOX,
)
from services.podworker.core.stopping import stop_container
from shared.kube.pod import Container, Pod, Probe

_NOTHING_YET = Verdicts()


class _Ending(NamedTuple):
    reason: str
    message: str
    grace: float


def pod_grace(pod: Pod) -> float:
    """Seconds that a container of the pod gets to end when nothing says otherwise."""
    return float(pod.spec.termination_grace_period_seconds)


def keep(draft: Draft, pod: Pod, container: Container, instance: RuntimeContainer) -> None:
    """See to a running instance: it runs on, with its postStart hook, or it's ended for what has changed."""
    ending = _ending(draft, pod, container, instance)
    if ending is not None:
        deadline = draft.now + ending.grace
        stop_container(draft, instance, deadline=deadline, reason=ending.reason, message=ending.message)
    else:
        hooks.sync_post_start(draft, container, instance)
        sync_resize(draft, pod, container, instance)
    if hooks.post_start_pending(container, instance, draft.memory):
        draft.hold(container.name)


def _ending(draft: Draft, pod: Pod, container: Container, instance: RuntimeContainer) -> _Ending | None:
    known = draft.memory.stops.get(instance.id)
    if known is not None:
        return _Ending(known.reason, "", known.deadline - draft.now)
    grace = pod_grace(pod)
    word = "Init container" if container in pod.spec.init_containers else "Container"
    if instance.hash and instance.hash != container_hash(container, draft.memory.source):
        message = f"{word} {container.name} definition changed, will be restarted"
        return _Ending(STOPPED_FOR_DEFINITION, message, grace)
    if resize_restarts(pod, container, instance, draft.memory):
        return _Ending(STOPPED_FOR_RESIZE, f"{word} {container.name} resize requires restart", grace)
    failed = _failed_probe(container, draft.memory.verdicts.get(instance.id, _NOTHING_YET))
    if failed is None:
        return None
    name, probe = failed
    if probe.termination_grace_period_seconds is not None:
        grace = float(probe.termination_grace_period_seconds)
    follows = ", will be restarted" if policy_of(pod, container.name) != "Never" else ""
    return _Ending(STOPPED_FOR_PROBE, f"{word} {container.name} failed {name} probe{follows}", grace)


def _failed_probe(container: Container, verdicts: Verdicts) -> tuple[str, Probe] | None:
    if container.liveness_probe is not None and verdicts.liveness == "failure":
        return "liveness", container.liveness_probe
    if container.startup_probe is not None and verdicts.startup == "failure":
        return "startup", container.startup_probe
    return None


def stop_misplaced(draft: Draft, pod: Pod, sandbox: RuntimeSandbox) -> None:
    """End what runs in another sandbox, and what an edit took out of a pod with a fixed uid (the kubelet would let that
    run on)."""
    spec = pod.spec
    names = {c.name for c in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers)}
    deadline = draft.now + pod_grace(pod)
    for instance in draft.runtime.running:
        if instance.name not in names:
            message = f"Container {instance.name} is no longer in the pod's definition"
            stop_container(draft, instance, deadline=deadline, reason=STOPPED_AS_STRAY, message=message)
        elif instance.sandbox_id != sandbox.id:
            stop_container(draft, instance, deadline=deadline, reason=STOPPED_FOR_SANDBOX)
