"""Pod, memory and what the engine shows -> v1.PodStatus, as the newest kubelet would write it."""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core.conditions import PodFacts, pod_conditions
from services.podworker.core.container_states import all_statuses
from services.podworker.core.model import PodMemory, Rejection, RuntimePod
from services.podworker.core.phase import phase_with_statuses
from services.podworker.core.resources import qos_class
from services.podworker.core.sandboxes import usable_sandbox
from shared.kube.pod import Pod
from shared.kube.status import TERMINAL, PodIP, PodPhase, PodStatus
from shared.kube.times import rfc3339


def generate_status(pod: Pod, memory: PodMemory, runtime: RuntimePod, *, node_ip: str, now: float) -> PodStatus:
    """The status to publish. `memory.status` is the one before it; `now` in seconds since the epoch.

    Store the answer with `remember_status`: the next call builds on it.
    """
    if memory.rejection is not None:
        return _rejected(pod, memory, memory.rejection, now)
    statuses = all_statuses(pod, memory, runtime)
    phase = phase_with_statuses(pod, memory, runtime, statuses)
    reason, message = _cause(pod, memory, phase)
    facts = PodFacts(
        phase=phase,
        can_start_containers=usable_sandbox(pod, runtime) is not None,
        restarts_all=bool(memory.restart_all),
        failure=memory.failure,
        resize_pending=memory.resize_pending,
        resizing=memory.resizing,
    )
    ips = _addresses(pod, memory, runtime, node_ip)
    return PodStatus(
        observed_generation=pod.metadata.generation,
        phase=phase,
        conditions=pod_conditions(pod, statuses, facts, memory.status, now=now),
        message=message,
        reason=reason,
        host_ip=node_ip,
        host_ips=[PodIP(ip=node_ip)] if node_ip else [],
        pod_ip=ips[0] if ips else "",
        pod_ips=[PodIP(ip=ip) for ip in ips],
        start_time=_start_time(memory, now),
        init_container_statuses=statuses.init,
        container_statuses=statuses.regular,
        qos_class=qos_class(pod),
        ephemeral_container_statuses=statuses.ephemeral,
    )


def _cause(pod: Pod, memory: PodMemory, phase: PodPhase) -> tuple[str, str]:
    """(reason, message) of the phase: kept while it is unchanged."""
    if memory.status is not None and memory.status.phase == phase:
        return memory.status.reason, memory.status.message
    if phase in TERMINAL and pod.status.phase == phase:
        return pod.status.reason, pod.status.message
    if memory.failure is not None and phase == "Failed":
        return memory.failure.reason, memory.failure.message
    return "", ""


def remember_status(memory: PodMemory, status: PodStatus, *, now: float) -> PodMemory:
    """The memory with a status that is about to be stored and published."""
    return replace(
        memory,
        status=status,
        started_at=now if memory.started_at is None else memory.started_at,
        ips=tuple(ip.ip for ip in status.pod_ips) or memory.ips,
    )


def _rejected(pod: Pod, memory: PodMemory, rejection: Rejection, now: float) -> PodStatus:
    """kubelet: a pod that wasn't admitted has no container statuses, no address and no conditions."""
    return PodStatus(
        observed_generation=pod.metadata.generation,
        phase="Failed",
        reason=rejection.reason,
        message=f"Pod was rejected: {rejection.message}",
        start_time=_start_time(memory, now),
        qos_class=qos_class(pod),
    )


def _start_time(memory: PodMemory, now: float) -> str:
    return rfc3339(now if memory.started_at is None else memory.started_at)


def _addresses(pod: Pod, memory: PodMemory, runtime: RuntimePod, node_ip: str) -> tuple[str, ...]:
    """The newest ready sandbox's, one per family; the last known ones when there is none."""
    if pod.spec.host_network:
        return (node_ip,) if node_ip else ()
    ready = next((s for s in runtime.sandboxes if s.ready and s.ips), None)
    if ready is None:
        return memory.ips
    by_family = {":" in ip: ip for ip in reversed(ready.ips)}
    wants_ipv6_first = ":" in node_ip
    return tuple(by_family[family] for family in (wants_ipv6_first, not wants_ipv6_first) if family in by_family)
