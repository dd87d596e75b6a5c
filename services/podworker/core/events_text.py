"""The events of pods in Kubernetes' words (node.md 6; wording of kubelet 1.36).

What a container wrote never enters an event: its log and its termination message may hold secrets.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from shared.kube.duration import format_duration, format_seconds
from shared.kube.pod import Pod


class PodEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a pod; the handlers give it an id and a time."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    container: str = ""
    """Whose it is; "" = the pod's."""

    def field_path(self, lists: Mapping[str, str]) -> str:
        """`involvedObject.fieldPath`; `lists` as `container_lists` gives it, without an entry for regular ones."""
        return f"spec.{lists.get(self.container, 'containers')}{{{self.container}}}" if self.container else ""


def container_lists(pod: Pod) -> dict[str, str]:
    """Container name -> the field of the spec that it stands in, of all but the regular ones."""
    return {
        **{container.name: "initContainers" for container in pod.spec.init_containers},
        **{container.name: "ephemeralContainers" for container in pod.spec.ephemeral_containers},
    }


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


def pull_backed_off(container: str, reference: str, remaining: float) -> PodEvent:
    return _normal("BackOff", f'Back-off pulling image "{reference}"; {_next_try(remaining)}', container)


def pull_secrets_missing(names: Sequence[str]) -> PodEvent:
    return _warning(
        "FailedToRetrieveImagePullSecret",
        f"Unable to retrieve some image pull secrets ({', '.join(names)}); "
        "attempting to pull the image may not succeed.",
    )


def never_pulled(container: str, message: str) -> PodEvent:
    return _warning("ErrImageNeverPull", message, container)


def inspect_failed(container: str, message: str) -> PodEvent:
    """The image's name can't be read, or the engine can't tell whether it's there."""
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


def restart_backed_off(container: str, pod: str, remaining: float) -> PodEvent:
    """`pod` as `full_name` writes it."""
    message = f"Back-off restarting failed container {container} in pod {pod}; {_next_try(remaining)}"
    return _warning("BackOff", message, container)


def _next_try(remaining: float) -> str:
    """In whole seconds, so that the same delay gives the same event."""
    return f"next try in {format_seconds(max(1, math.ceil(remaining)))}"


def exited(container: str, exit_code: int, reason: str, what_follows: str) -> PodEvent:
    """Not a Kubernetes event: there the exit code and its cause are in the status only, until the next restart."""
    cause = reason
    if reason != "OOMKilled" and (name := _signal_name(exit_code)):
        cause = f"{reason}, {name}"
    text = f"Container {container} exited with code {exit_code} ({cause}): {what_follows}"
    return PodEvent(type="Warning" if exit_code else "Normal", reason="Exited", message=text, container=container)


def gone(container: str) -> PodEvent:
    """Not a Kubernetes event either: the kubelet starts it again without a word."""
    message = f"Container {container} was removed from the engine by somebody else: it is started again"
    return _warning("ContainerGone", message, container)


def _signal_name(exit_code: int) -> str:
    """What a shell's convention makes of the code: 137 = SIGKILL."""
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return ""


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


def missing_cluster_dns(pod: str) -> PodEvent:
    """`pod` as `full_name` writes it."""
    return _warning(
        "MissingClusterDNS",
        f'pod: "{pod}". kubelet does not have ClusterDNS IP configured and cannot create Pod using '
        '"ClusterFirst" policy. Falling back to "Default" policy.',
    )


def servers_omitted(applied: Sequence[str]) -> PodEvent:
    return _warning(
        "DNSConfigForming",
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
        + " ".join(applied),
    )


def searches_omitted(applied: Sequence[str]) -> PodEvent:
    return _warning(
        "DNSConfigForming",
        "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "
        + " ".join(applied),
    )


def sync_failed(reason: str, error: str) -> PodEvent:
    """Of a stop or a removal that the engine refused; a start has events of its own."""
    return _warning("FailedSync", f"Error syncing pod, skipping: {reason}: {error}")


def rejected(reason: str, message: str) -> PodEvent:
    """`message` without the "Pod was rejected: " that the status puts before it."""
    return _warning(reason, message)


def mount_failed(volume: str, error: str) -> PodEvent:
    return _warning("FailedMount", f'MountVolume.SetUp failed for volume "{volume}" : {error}')
