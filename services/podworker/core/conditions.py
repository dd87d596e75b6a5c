"""The pod's conditions (lifecycle 4.2). A transition time moves only when the status does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from services.podworker.core.container_states import Statuses
from services.podworker.core.model import Failure, ResizePending, Resizing
from services.podworker.core.restart_rules import RESTART_ALL
from shared.kube.pod import GivenCondition, Pod, is_sidecar
from shared.kube.pod_conditions import NODE_CONDITIONS
from shared.kube.status import ConditionStatus, PodCondition, PodPhase, PodStatus
from shared.kube.times import rfc3339

CONTAINERS_NOT_READY = "ContainersNotReady"
CONTAINERS_NOT_INITIALIZED = "ContainersNotInitialized"
READINESS_GATES_NOT_READY = "ReadinessGatesNotReady"
POD_COMPLETED = "PodCompleted"
POD_FAILED = "PodFailed"
DISRUPTION_TARGET = "DisruptionTarget"
DISRUPTIONS = ("Evicted", "Preempting", "Terminated")
"""Reasons of a failure that isn't the pod's own doing: eviction, preemption, the node's shutdown."""


class _Answer(NamedTuple):
    status: ConditionStatus
    reason: str = ""
    message: str = ""


class PodFacts(NamedTuple):
    """What conditions are told by, beside the containers' statuses."""

    phase: PodPhase
    can_start_containers: bool
    """A usable sandbox exists."""
    restarts_all: bool = False
    """All containers are being removed to start over."""
    failure: Failure | None = None
    resize_pending: ResizePending | None = None
    resizing: Resizing | None = None


def pod_conditions(
    pod: Pod, statuses: Statuses, facts: PodFacts, previous: PodStatus | None, *, now: float
) -> list[PodCondition]:
    """Others' conditions first, then the node's in the kubelet's order. `now` in seconds since the epoch."""
    phase = facts.phase
    containers_ready = _containers_ready(pod, phase, statuses)
    answers: dict[str, _Answer] = {}
    if facts.failure is not None and facts.failure.reason in DISRUPTIONS:
        answers[DISRUPTION_TARGET] = _Answer("True", "TerminationByKubelet", facts.failure.message)
    answers |= {
        "PodReadyToStartContainers": _Answer("True" if facts.can_start_containers else "False"),
        "Initialized": _initialized(pod, phase, statuses, previous),
        "Ready": _ready(pod, containers_ready),
        "ContainersReady": containers_ready,
        "PodScheduled": _Answer("True"),
    }
    if _has_rule_for_all(pod):
        answers["AllContainersRestarting"] = _restarting_all(facts)
    if facts.resize_pending is not None:
        answers["PodResizePending"] = _Answer("True", facts.resize_pending.reason, facts.resize_pending.message)
    if facts.resizing is not None:
        error = facts.resizing.error
        answers["PodResizeInProgress"] = _Answer("True", "Error" if error else "", error)
    generation = pod.metadata.generation
    owned = [_condition(kind, answer, previous, generation, now) for kind, answer in answers.items()]
    return [*_given(pod.status.conditions, now), *owned]


def _condition(kind: str, answer: _Answer, previous: PodStatus | None, generation: int, now: float) -> PodCondition:
    before = previous.condition(kind) if previous is not None else None
    unchanged = before is not None and before.status == answer.status
    return PodCondition(
        type=kind,
        observed_generation=generation,
        status=answer.status,
        last_probe_time=None,
        last_transition_time=before.last_transition_time if before and unchanged else rfc3339(now),
        reason=answer.reason,
        message=answer.message,
    )


def _given(conditions: Iterable[GivenCondition], now: float) -> list[PodCondition]:
    return [
        PodCondition(
            type=given.type,
            observed_generation=given.observed_generation,
            status=_known(given.status),
            last_probe_time=None,
            last_transition_time=given.last_transition_time or rfc3339(now),
            reason=given.reason,
            message=given.message,
        )
        for given in conditions
        if given.type not in NODE_CONDITIONS
    ]


def _known(status: str) -> ConditionStatus:
    match status:
        case "True" | "False":
            return status
        case _:
            return "Unknown"


def _containers_ready(pod: Pod, phase: PodPhase, statuses: Statuses) -> _Answer:
    known = {status.name: status for status in (*statuses.init, *statuses.regular)}
    sidecars = [container.name for container in pod.spec.init_containers if is_sidecar(container)]
    names = [*sidecars, *(container.name for container in pod.spec.containers)]
    unknown = [name for name in names if name not in known]
    unready = [name for name in names if name in known and not known[name].ready]
    if phase == "Succeeded" and not unknown:
        return _Answer("False", POD_COMPLETED)
    if phase == "Failed":
        return _Answer("False", POD_FAILED)
    message = _listed(unknown, unready, "unready")
    return _Answer("False", CONTAINERS_NOT_READY, message) if message else _Answer("True")


def _ready(pod: Pod, containers_ready: _Answer) -> _Answer:
    """Readiness gates are asked only once the containers are ready."""
    if containers_ready.status != "True":
        return containers_ready
    given = {condition.type: condition.status for condition in pod.status.conditions}
    messages = []
    for gate in pod.spec.readiness_gates:
        kind = gate.condition_type
        if kind not in given:
            messages.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif given[kind] != "True":
            messages.append(f'the status of pod readiness gate "{kind}" is not "True", but {given[kind]}')
    return _Answer("False", READINESS_GATES_NOT_READY, ", ".join(messages)) if messages else _Answer("True")


def _initialized(pod: Pod, phase: PodPhase, statuses: Statuses, previous: PodStatus | None) -> _Answer:
    known = {status.name: status for status in statuses.init}
    unknown = [c.name for c in pod.spec.init_containers if c.name not in known]
    incomplete = []
    for container in pod.spec.init_containers:
        status = known.get(container.name)
        if status is not None and not (status.started if is_sidecar(container) else status.ready):
            incomplete.append(container.name)
    if phase == "Succeeded" and not unknown:
        return _Answer("True", POD_COMPLETED)
    if any(status.state.running or status.state.terminated for status in statuses.regular):
        return _Answer("True")
    message = _listed(unknown, incomplete, "incomplete")
    if message and not _was_initialized(previous):
        return _Answer("False", CONTAINERS_NOT_INITIALIZED, message)
    return _Answer("True")


def _was_initialized(previous: PodStatus | None) -> bool:
    """kubelet: what has been initialized stays so, also while all its containers start over."""
    before = previous.condition("Initialized") if previous is not None else None
    return before is not None and before.status == "True"


def _has_rule_for_all(pod: Pod) -> bool:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return any(rule.action == RESTART_ALL for container in containers for rule in container.restart_policy_rules)


def _restarting_all(facts: PodFacts) -> _Answer:
    if facts.phase == "Succeeded":
        return _Answer("False", POD_COMPLETED)
    if facts.phase == "Failed":
        return _Answer("False", POD_FAILED)
    if not facts.restarts_all:
        return _Answer("False")
    return _Answer("True", "RestartAllContainersStarted", "container exited with restart policy rule")


def _listed(unknown: Sequence[str], others: Sequence[str], word: str) -> str:
    """`containers with unready status: [a b]`, as Go prints a list of strings."""
    parts = []
    if unknown:
        parts.append(f"containers with unknown status: [{' '.join(unknown)}]")
    if others:
        parts.append(f"containers with {word} status: [{' '.join(others)}]")
    return ", ".join(parts)
