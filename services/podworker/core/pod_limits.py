"""What a pod's own cgroup is given: a bound over all of its containers (kubelet: ResourceConfigForPod)."""

from __future__ import annotations

import msgspec

from services.podworker.core.resources import (
    CPU_PERIOD_MICROSECONDS,
    MAX_CPU_SHARES,
    MIN_CPU_QUOTA_MICROSECONDS,
    MIN_CPU_SHARES,
    cpu_milli,
    memory_limit,
    needed_at_once,
)
from shared.kube.pod import Container, Pod


class PodLimits(msgspec.Struct, frozen=True, kw_only=True):
    """0 = not set."""

    cpu_shares: int = 0
    cpu_quota: int = 0
    """Microseconds per period of 100 ms."""
    memory: int = 0
    """Bytes."""


def pod_limits(pod: Pod) -> PodLimits:
    """Shares from the requests that are needed at once, 2 without any; a quota or memory limit only when every
    container has one, init containers included.

    kubelet: these three rules give a Guaranteed pod all of them and a BestEffort pod 2 shares alone.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    limit = needed_at_once(pod, lambda container: cpu_milli(container.resources.limits))
    quota = limit * CPU_PERIOD_MICROSECONDS // 1000
    all_cpu = all(cpu_milli(c.resources.limits) > 0 for c in containers)
    all_memory = all(memory_limit(c) > 0 for c in containers)
    shares = needed_at_once(pod, _requested_milli) * 1024 // 1000
    return PodLimits(
        cpu_shares=max(MIN_CPU_SHARES, min(MAX_CPU_SHARES, shares)),
        cpu_quota=max(MIN_CPU_QUOTA_MICROSECONDS, quota) if all_cpu else 0,
        memory=needed_at_once(pod, memory_limit) if all_memory else 0,
    )


def _requested_milli(container: Container) -> int:
    requests, limits = container.resources.requests, container.resources.limits
    return cpu_milli(requests if "cpu" in requests else limits)
