"""Whom a critical pod takes the place of when the node hasn't room for it (node 9).

kubelet 1.36: preemption.CriticalPodAdmissionHandler. Here the critical pod waits until its victims have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import Failure, PodMemory, RuntimePod
from services.podworker.core.phase import is_terminal, projected_phase
from services.podworker.core.resources import qos_class
from shared.kube.pod import Pod
from shared.kube.status import QOSClass

SYSTEM_CRITICAL = 2_000_000_000
"""The priority of system-cluster-critical; system-node-critical's is above it."""
PREEMPTED = Failure(reason="Preempting", message="Preempted in order to admit critical pod")


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An admitted pod that hasn't ended."""

    uid: str
    asks: dict[str, int]
    """By resource, cpu in thousandths; each asks for one of "pods"."""
    qos: QOSClass = "BestEffort"
    is_critical: bool = False
    priority: int | None = None
    is_going: bool = False
    """Preempted already: what it asks for will be free."""
    is_ending: bool = False
    """For another reason."""


def is_critical(pod: Pod, source: str) -> bool:
    """Of pods from files and URLs each is."""
    return source != "api" or (pod.spec.priority or 0) >= SYSTEM_CRITICAL


def candidate_of(pod: Pod, memory: PodMemory, asks: Mapping[str, int]) -> Candidate:
    is_going = memory.failure == PREEMPTED
    return Candidate(
        uid=memory.uid,
        asks={**asks, "pods": 1},
        qos=qos_class(pod),
        is_critical=is_critical(pod, memory.source),
        priority=pod.spec.priority,
        is_going=is_going,
        is_ending=not is_going and (memory.failure is not None or memory.termination is not None),
    )


def may_preempt(priority: int | None, other: Candidate) -> bool:
    """Whether a critical pod of this priority may take the other's place."""
    if not other.is_critical:
        return True
    return priority is not None and other.priority is not None and priority > other.priority


def choose_victims(
    lacks: Mapping[str, int], priority: int | None, candidates: Iterable[Candidate]
) -> tuple[tuple[str, ...], dict[str, int]]:
    """(UIDs of those to preempt, what would still be lacking with all preempted). Those that were preempted before are
    among the first, and count before any other. Something lacking = there is no use in preempting anybody."""
    candidates = list(candidates)
    going = [one for one in candidates if one.is_going]
    left = _less(lacks, going)
    free_for_all = [one for one in candidates if not (one.is_going or one.is_ending) and may_preempt(priority, one)]
    by_qos = {
        qos: sorted((one for one in free_for_all if one.qos == qos), key=lambda one: one.uid)
        for qos in ("BestEffort", "Burstable", "Guaranteed")
    }
    unmet = _less(left, free_for_all)
    if unmet:
        return (), unmet
    best_effort, burstable, guaranteed = by_qos["BestEffort"], by_qos["Burstable"], by_qos["Guaranteed"]
    # each class only for what all of the lower ones can't give
    of_guaranteed = _closest(guaranteed, _less(left, [*best_effort, *burstable]))
    of_burstable = _closest(burstable, _less(left, [*best_effort, *of_guaranteed]))
    of_best_effort = _closest(best_effort, _less(left, [*of_burstable, *of_guaranteed]))
    return tuple(one.uid for one in (*going, *of_best_effort, *of_burstable, *of_guaranteed)), {}


def preempt(pod: Pod | None, memory: PodMemory, runtime: RuntimePod) -> tuple[PodMemory, list[PodEvent]]:
    """The pod fails in favour of a critical one; one that ends anyway stays as it is."""
    is_active = memory.admitted and memory.rejection is None and memory.termination is None and memory.failure is None
    if pod is None or not is_active or is_terminal(projected_phase(pod, memory, runtime)):
        return memory, []
    event = PodEvent(type="Warning", reason=PREEMPTED.reason, message=PREEMPTED.message)
    return replace(memory, failure=PREEMPTED), [event]


def _less(lacks: Mapping[str, int], pods: Iterable[Candidate]) -> dict[str, int]:
    """What is still lacking when these have gone."""
    gone = list(pods)
    rest = {name: amount - sum(one.asks.get(name, 0) for one in gone) for name, amount in lacks.items()}
    return {name: amount for name, amount in rest.items() if amount > 0}


def _closest(pods: Sequence[Candidate], lacks: Mapping[str, int]) -> list[Candidate]:
    """Again and again the pod that leaves the least lacking, the smaller one of equals."""
    rest, chosen = list(pods), []
    while lacks and rest:
        best = min(rest, key=lambda one: (_distance(lacks, one), one.asks.get("memory", 0), one.asks.get("cpu", 0)))
        rest.remove(best)
        chosen.append(best)
        lacks = _less(lacks, [best])
    return chosen


def _distance(lacks: Mapping[str, int], pod: Candidate) -> float:
    """The sum of the squared fractions that would stay unmet."""
    return sum((max(0, amount - pod.asks.get(name, 0)) / amount) ** 2 for name, amount in lacks.items())
