"""In-place resize: a definition's new cpu and memory are granted by admission, then given to what runs (lifecycle 3.6).

Until they are granted the pod goes on with what it has. kubelet 1.36: allocation manager, computePodResizeAction.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from services.podworker.core.admission import NodeLimits
from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import PodMemory, ResizePending, Resizing, RuntimeContainer
from services.podworker.core.plan import Draft, UpdateContainer
from services.podworker.core.pod_resources import bounded, other_names, pod_request
from services.podworker.core.resources import cpu_quota, cpu_shares, memory_limit, qos_class
from shared.kube.pod import Container, Pod, ResourceRequirements, decode_pod

RETRY_SECONDS = 10.0
"""After a resize that didn't fit or was refused."""

Granted = dict[str, ResourceRequirements]


def granted_by(pod: Pod) -> Granted:
    """By container name, as the definition says."""
    return {c.name: c.resources for c in (*pod.spec.init_containers, *pod.spec.containers)}


def keep_granted(memory: PodMemory, before: bytes, after: bytes) -> PodMemory:
    """A new version of an admitted pod: what it had stays granted until admission has judged what it wants now."""
    if not memory.admitted or not before or before == after:
        return memory
    had = memory.allocated or granted_by(decode_pod(before))
    wanted = granted_by(decode_pod(after))
    changed = {name for name in had.keys() & wanted.keys() if had[name] != wanted[name]}
    if not changed:
        return replace(memory, allocated={}, resize_pending=None)
    return replace(memory, allocated=had)


def with_granted(pod: Pod, memory: PodMemory) -> Pod:
    """The pod with the resources that it may have now."""
    if not memory.allocated:
        return pod
    spec = pod.spec
    return replace(
        pod,
        spec=replace(
            spec,
            containers=[_granted(container, memory) for container in spec.containers],
            init_containers=[_granted(container, memory) for container in spec.init_containers],
        ),
    )


def _granted(container: Container, memory: PodMemory) -> Container:
    return replace(container, resources=memory.allocated.get(container.name, container.resources))


def never_fits(pod: Pod, memory: PodMemory, limits: NodeLimits) -> str:
    """Why what the definition wants can't be had on this node at all; "" = it may, now or later."""
    before = with_granted(pod, memory)
    if qos_class(before) != qos_class(pod):
        return f"Pod QOS Class may not change as a result of resizing: {qos_class(before)} to {qos_class(pod)}"
    wanted = granted_by(pod)
    for name, had in memory.allocated.items():
        now = wanted.get(name, had)
        if {**had.limits}.keys() - now.limits.keys():
            return f"container {name}: resource limits cannot be removed"
    if any(pod_request(before, name) != pod_request(pod, name) for name in {*other_names(before), *other_names(pod)}):
        return "only cpu and memory resources are mutable"
    for resource, capacity in (("cpu", limits.cpu_milli), ("memory", limits.memory_bytes)):
        if (requested := pod_request(pod, resource)) > capacity:
            return f"Node didn't have enough capacity: {resource}, requested: {requested}, capacity: {capacity}"
    return ""


def record_pending(memory: PodMemory, reason: str, message: str) -> tuple[PodMemory, list[PodEvent]]:
    """`reason`: Deferred or Infeasible. Told once."""
    pending = ResizePending(reason=reason, message=message)
    if memory.resize_pending is not None and memory.resize_pending.reason == reason:
        return replace(memory, resize_pending=pending), []
    event = PodEvent(type="Warning", reason=f"Resize{reason}", message=f"Pod resize {reason}: {message}")
    return replace(memory, resize_pending=pending), [event]


def record_granted(pod: Pod, memory: PodMemory) -> tuple[PodMemory, list[PodEvent]]:
    """From now on the definition counts."""
    memory = replace(memory, allocated={}, resize_pending=None, resizing=Resizing())
    return memory, [PodEvent(type="Normal", reason="ResizeStarted", message=f"Pod resize started: {_text(pod)}")]


def record_resize_failed(memory: PodMemory, name: str, message: str, now: float) -> tuple[PodMemory, list[PodEvent]]:
    """The engine would not; tried again, told once."""
    failed = Resizing(error=f"container {name}: {message}", retry_at=now + RETRY_SECONDS)
    if memory.resizing is not None and memory.resizing.error == failed.error:
        return replace(memory, resizing=failed), []
    event = PodEvent(type="Warning", reason="ResizeError", message=f"Pod resize error: {message}", container=name)
    return replace(memory, resizing=failed), [event]


def resize_restarts(pod: Pod, container: Container, instance: RuntimeContainer, memory: PodMemory) -> bool:
    """Whether the container must be started anew to be given what it's granted."""
    if memory.resizing is None:
        return False
    restarting = {one.resource_name for one in container.resize_policy if one.restart_policy == "RestartContainer"}
    return bool(restarting & _changed(pod, container, instance))


def sync_resize(draft: Draft, pod: Pod, container: Container, instance: RuntimeContainer) -> None:
    """Give a running container what it's granted."""
    resizing = draft.memory.resizing
    if resizing is None or not _changed(pod, container, instance):
        return
    if draft.now < resizing.retry_at:
        draft.wake(resizing.retry_at)
        return
    sized = bounded(pod, container)
    draft.act(
        UpdateContainer(
            container_id=instance.id,
            name=container.name,
            cpu_shares=cpu_shares(sized),
            cpu_quota=cpu_quota(sized),
            memory=memory_limit(sized),
            reason=f"Container {container.name} is resized",
        )
    )


def end_resize(draft: Draft, pod: Pod) -> None:
    """At the end of a look: the resize is over once nothing that runs has anything else. Pending ones are judged again
    later."""
    if draft.memory.resize_pending is not None:
        draft.wake(draft.now + RETRY_SECONDS)
    if draft.memory.resizing is None:
        return
    containers = {c.name: c for c in (*pod.spec.init_containers, *pod.spec.containers)}
    for instance in draft.runtime.running:
        if instance.name in containers and _changed(pod, containers[instance.name], instance):
            return
    draft.memory = replace(draft.memory, resizing=None)
    draft.tell(PodEvent(type="Normal", reason="ResizeCompleted", message=f"Pod resize completed: {_text(pod)}"))


def _changed(pod: Pod, container: Container, instance: RuntimeContainer) -> set[str]:
    """Of cpu and memory what a running instance has otherwise than it's granted."""
    sized = bounded(pod, container)
    found = set()
    if (cpu_shares(sized), cpu_quota(sized)) != (instance.cpu_shares, instance.cpu_quota):
        found.add("cpu")
    if memory_limit(sized) != instance.memory:
        found.add("memory")
    return found


def _text(pod: Pod) -> str:
    containers = [{"name": c.name, "resources": c.resources} for c in pod.spec.containers]
    return msgspec.json.encode({"containers": containers, "generation": pod.metadata.generation}).decode()
