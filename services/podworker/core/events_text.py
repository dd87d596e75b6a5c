"""The events of pods in Kubernetes' words (node.md 6; wording of kubelet 1.36)."""

from __future__ import annotations

from typing import Literal

import msgspec

from shared.kube.duration import format_duration


class PodEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a pod; the handlers give it an id and a time."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    container: str = ""
    """Whose it is; "" = the pod's."""

    @property
    def field_path(self) -> str:
        """`involvedObject.fieldPath` for a regular container's event."""
        return f"spec.containers{{{self.container}}}" if self.container else ""


def _normal(reason: str, message: str, container: str = "") -> PodEvent:
    return PodEvent(type="Normal", reason=reason, message=message, container=container)


def _warning(reason: str, message: str, container: str = "") -> PodEvent:
    return PodEvent(type="Warning", reason=reason, message=message, container=container)


def full_name(namespace: str, name: str, uid: str) -> str:
    """How the kubelet writes a pod in its messages: `name_namespace(uid)`."""
    return f"{name}_{namespace}({uid})"


def pulling(container: str, reference: str) -> PodEvent:
    return _normal("Pulling", f'Pulling image "{reference}"', container)


def pulled(container: str, reference: str, seconds: float, waited: float, size: int) -> PodEvent:
    """`seconds` the pull itself took, `waited` with the time spent waiting for its turn, `size` in bytes."""
    took, total = _to_milliseconds(seconds), _to_milliseconds(waited)
    return _normal(
        "Pulled",
        f'Successfully pulled image "{reference}" in {took} ({total} including waiting). Image size: {size} bytes.',
        container,
    )


def _to_milliseconds(seconds: float) -> str:
    return format_duration(int(seconds * 1000) * 1_000_000)


def already_present(container: str, reference: str) -> PodEvent:
    message = f'Container image "{reference}" already present on machine and can be accessed by the pod'
    return _normal("Pulled", message, container)


def pull_failed(container: str, reference: str, error: str) -> PodEvent:
    return _warning("Failed", f'Failed to pull image "{reference}": {error}', container)


def pull_backed_off(container: str, reference: str) -> PodEvent:
    return _normal("BackOff", f'Back-off pulling image "{reference}"', container)


def never_pulled(container: str, message: str) -> PodEvent:
    return _warning("ErrImageNeverPull", message, container)


def invalid_image(container: str, message: str) -> PodEvent:
    return _warning("InspectFailed", message, container)


def start_failed(container: str, error: str) -> PodEvent:
    """Of the whole start: `error` is the engine's text, or the waiting reason when it's about the image."""
    return _warning("Failed", f"Error: {error}", container)


def created(container: str) -> PodEvent:
    return _normal("Created", "Container created", container)


def started(container: str) -> PodEvent:
    return _normal("Started", "Container started", container)


def killing(container: str, message: str = "") -> PodEvent:
    return _normal("Killing", message or f"Stopping container {container}", container)


def restart_backed_off(container: str, pod: str) -> PodEvent:
    """`pod` as `full_name` writes it."""
    return _warning("BackOff", f"Back-off restarting failed container {container} in pod {pod}", container)


def sandbox_changed() -> PodEvent:
    return _normal("SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")


def sandbox_failed(error: str) -> PodEvent:
    return _warning("FailedCreatePodSandBox", f"Failed to create pod sandbox: {error}")


def child_oom_killed(container: str, exit_code: int) -> PodEvent:
    """Not a Kubernetes event: the kubelet calls the whole container OOMKilled, we only say what happened."""
    return _warning(
        "ChildOOMKilled",
        f"A process of container {container} was killed for lack of memory; the container itself exited with "
        f"code {exit_code}",
        container,
    )


def missing_cluster_dns(policy: str) -> PodEvent:
    return _warning(
        "MissingClusterDNS",
        "kubelet does not have ClusterDNS IP configured and cannot create Pod using "
        f'"{policy}" policy. Falling back to "Default" policy.',
    )


def sync_failed(reason: str, error: str) -> PodEvent:
    """Of a stop or a removal that the engine refused; a start has events of its own."""
    return _warning("FailedSync", f"Error syncing pod, skipping: {reason}: {error}")


def rejected(reason: str, message: str) -> PodEvent:
    """`message` without the "Pod was rejected: " that the status puts before it."""
    return _warning(reason, message)
