"""Init containers: one after the other to their ends, and sidecars beside the others (lifecycle 3.3)."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from services.podworker.core.keeping import keep
from services.podworker.core.model import PodMemory, RuntimeContainer, RuntimePod, RuntimeSandbox
from services.podworker.core.plan import Draft, RemoveContainer
from services.podworker.core.restart_rules import policy_of, restarts_after_exit
from services.podworker.core.restarts import remembering_attempt
from services.podworker.core.starting import start_container
from shared.kube.pod import Container, Pod, is_sidecar

Progress = Literal["under way", "initialized", "failed"]


class Initialization(msgspec.Struct, frozen=True, kw_only=True):
    """How far the init containers are, and what is to be done about them."""

    progress: Progress
    starts: tuple[str, ...] = ()
    """To be started now, if nothing holds them up, by name in the order of the spec."""
    failed: str = ""
    """The one that has failed for good."""


def initialization(pod: Pod, memory: PodMemory, runtime: RuntimePod, sandbox: RuntimeSandbox) -> Initialization:
    """From the last to the first: the newest that has an instance tells how far they are.

    A regular container that was created proves that all are done, also where their dead instances were removed; one
    that has exited doesn't, for it may be from before a reboot.
    """
    containers = pod.spec.init_containers
    initialized = not containers or _has_regular(pod, runtime, sandbox)
    reached, starts = initialized, []
    for index in reversed(range(len(containers))):
        container, is_last = containers[index], index == len(containers) - 1
        instance = _newest_in(runtime, sandbox, container.name)
        if instance is None:
            if reached and is_sidecar(container):
                starts.append(container.name)
            continue
        if reached and not is_sidecar(container):
            continue
        if _has_failed(pod, container, instance):
            return Initialization(progress="failed", failed=container.name)
        if _is_to_start(container, instance):
            starts.append(container.name)
        elif _lets_the_next_start(container, instance, memory) and not reached:
            if is_last:
                initialized = True
            else:
                starts.append(containers[index + 1].name)
        reached = True
    if not reached:
        starts.append(containers[0].name)
    return Initialization(progress="initialized" if initialized else "under way", starts=tuple(reversed(starts)))


def sync_init_containers(draft: Draft, pod: Pod, sandbox: RuntimeSandbox, todo: Initialization) -> None:
    """Keep the running ones, start those that are to start, in the order of the spec."""
    for container in pod.spec.init_containers:
        instance = _newest_in(draft.runtime, sandbox, container.name)
        if instance is not None and instance.state == "running":
            if is_sidecar(container):
                keep(draft, pod, container, instance)
            else:
                draft.note(f"Init container {container.name} runs")
        elif container.name in todo.starts:
            start_container(draft, pod, container, sandbox)


def remove_init_containers(draft: Draft, pod: Pod) -> None:
    """Before a new sandbox: they all run again in it. Their attempts go on counting."""
    names = {container.name for container in pod.spec.init_containers}
    for instance in reversed(draft.runtime.containers):
        if instance.name in names:
            draft.memory = remembering_attempt(draft.memory, instance)
            reason = f"Init container {instance.name} runs again in the new sandbox"
            draft.act(RemoveContainer(container_id=instance.id, name=instance.name, reason=reason))
    draft.runtime = replace(draft.runtime, containers=tuple(c for c in draft.runtime.containers if c.name not in names))


def _has_regular(pod: Pod, runtime: RuntimePod, sandbox: RuntimeSandbox) -> bool:
    newest = (_newest_in(runtime, sandbox, container.name) for container in pod.spec.containers)
    return any(instance is not None and instance.state in ("created", "running") for instance in newest)


def _newest_in(runtime: RuntimePod, sandbox: RuntimeSandbox, name: str) -> RuntimeContainer | None:
    """Of the container's instances in this sandbox: what ran before a new sandbox says nothing."""
    return next((c for c in runtime.containers if c.name == name and c.sandbox_id == sandbox.id), None)


def _has_failed(pod: Pod, container: Container, instance: RuntimeContainer) -> bool:
    """For good: the pod fails with it."""
    if is_sidecar(container):
        return False
    if instance.state == "unknown":
        return policy_of(pod, container.name) == "Never"
    has_failed = instance.state == "exited" and instance.exit_code != 0
    return has_failed and not restarts_after_exit(pod, container.name, instance.exit_code)


def _is_to_start(container: Container, instance: RuntimeContainer) -> bool:
    if instance.state == "exited":
        return is_sidecar(container) or instance.exit_code != 0
    return instance.state != "running"


def _lets_the_next_start(container: Container, instance: RuntimeContainer, memory: PodMemory) -> bool:
    """A plain one that has succeeded, or a sidecar that has started; its liveness and readiness don't count."""
    if not is_sidecar(container):
        return instance.state == "exited"
    hook = memory.post_starts.get(instance.id)
    if hook is not None and hook.state == "failed":
        return False  # it's ending
    if container.startup_probe is None:
        return True
    verdicts = memory.verdicts.get(instance.id)
    return verdicts is not None and verdicts.startup == "success"
