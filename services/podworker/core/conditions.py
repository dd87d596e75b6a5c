"""The pod's conditions (lifecycle 4.2). A transition time moves only when the status does."""

from __future__ import annotations

from collections.abc import Sequence

from shared.kube.pod import Pod
from shared.kube.status import ConditionStatus, ContainerStatus, PodCondition, PodPhase, PodStatus
from shared.kube.times import rfc3339

CONTAINERS_NOT_READY = "ContainersNotReady"
CONTAINERS_NOT_INITIALIZED = "ContainersNotInitialized"
POD_COMPLETED = "PodCompleted"
POD_FAILED = "PodFailed"

_Answer = tuple[ConditionStatus, str, str]


def pod_conditions(
    pod: Pod,
    phase: PodPhase,
    init: Sequence[ContainerStatus],
    regular: Sequence[ContainerStatus],
    previous: PodStatus | None,
    *,
    can_start_containers: bool,
    now: float,
) -> list[PodCondition]:
    """In the kubelet's order. `can_start_containers`: a usable sandbox exists; `now` in seconds since the
    epoch.
    """
    ready = _containers_ready(pod, phase, regular)
    answers: dict[str, _Answer] = {
        "PodReadyToStartContainers": ("True" if can_start_containers else "False", "", ""),
        "Initialized": _initialized(pod, phase, init, regular),
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": ("True", "", ""),
    }
    return [_condition(kind, answer, previous, now) for kind, answer in answers.items()]


def _condition(kind: str, answer: _Answer, previous: PodStatus | None, now: float) -> PodCondition:
    status, reason, message = answer
    before = previous.condition(kind) if previous is not None else None
    unchanged = before is not None and before.status == status
    return PodCondition(
        type=kind,
        status=status,
        last_probe_time=None,
        last_transition_time=before.last_transition_time if before and unchanged else rfc3339(now),
        reason=reason,
        message=message,
    )


def _containers_ready(pod: Pod, phase: PodPhase, regular: Sequence[ContainerStatus]) -> _Answer:
    known = {status.name: status for status in regular}
    names = [container.name for container in pod.spec.containers]
    unknown = [name for name in names if name not in known]
    unready = [name for name in names if name in known and not known[name].ready]
    if phase == "Succeeded" and not unknown:
        return "False", POD_COMPLETED, ""
    if phase == "Failed":
        return "False", POD_FAILED, ""
    message = _listed(unknown, unready, "unready")
    return ("False", CONTAINERS_NOT_READY, message) if message else ("True", "", "")


def _initialized(
    pod: Pod, phase: PodPhase, init: Sequence[ContainerStatus], regular: Sequence[ContainerStatus]
) -> _Answer:
    known = {status.name: status for status in init}
    names = [container.name for container in pod.spec.init_containers]
    unknown = [name for name in names if name not in known]
    incomplete = [name for name in names if name in known and not known[name].ready]
    if phase == "Succeeded" and not unknown:
        return "True", POD_COMPLETED, ""
    if any(status.state.running or status.state.terminated for status in regular):
        return "True", "", ""
    message = _listed(unknown, incomplete, "incomplete")
    return ("False", CONTAINERS_NOT_INITIALIZED, message) if message else ("True", "", "")


def _listed(unknown: Sequence[str], others: Sequence[str], word: str) -> str:
    """`containers with unready status: [a b]`, as Go prints a list of strings."""
    parts = []
    if unknown:
        parts.append(f"containers with unknown status: [{' '.join(unknown)}]")
    if others:
        parts.append(f"containers with {word} status: [{' '.join(others)}]")
    return ", ".join(parts)
