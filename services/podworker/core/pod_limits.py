"""What a pod's own cgroup is given: a bound over all of its containers (kubelet: ResourceConfigForPod)."""

from __future__ import annotations

import msgspec

from services.podworker.core.pod_resources import amount_of, huge_page_limits, needed_at_once, pod_limit
from services.podworker.core.resources import (
    CPU_PERIOD_MICROSECONDS,
    MAX_CPU_SHARES,
    MIN_CPU_QUOTA_MICROSECONDS,
    MIN_CPU_SHARES,
    cpu_milli,
)
from shared.kube.pod import Container, Pod


class PodLimits(msgspec.Struct, frozen=True, kw_only=True):
    """0 = not set."""

    cpu_shares: int = 0
    cpu_quota: int = 0
    """Microseconds per period of 100 ms."""
    memory: int = 0
    """Bytes."""
    pids: int = 0
    huge_pages: dict[str, int] = {}
    """By size ("2Mi"), in bytes; of a size that isn't here the pod may have none."""


def pod_limits(pod: Pod, pids: int = 0) -> PodLimits:
    """Shares from the requests that are needed at once, 2 without any; a quota or memory limit only when the pod or
    every container has one, init containers included. `pids`: podPidsLimit.

    kubelet: these three rules give a Guaranteed pod all of them and a BestEffort pod 2 shares alone.
    """
    limit = pod_limit(pod, "cpu")
    quota = limit * CPU_PERIOD_MICROSECONDS // 1000
    shares = _pod_milli(pod) * 1024 // 1000
    return PodLimits(
        cpu_shares=max(MIN_CPU_SHARES, min(MAX_CPU_SHARES, shares)),
        cpu_quota=max(MIN_CPU_QUOTA_MICROSECONDS, quota) if limit else 0,
        memory=pod_limit(pod, "memory"),
        pids=max(0, pids),
        huge_pages=huge_page_limits(pod),
    )


def _pod_milli(pod: Pod) -> int:
    own, overhead = pod.spec.resources, amount_of(pod.spec.overhead, "cpu")
    if "cpu" in own.requests:
        return cpu_milli(own.requests) + overhead
    return (needed_at_once(pod, _requested_milli) or cpu_milli(own.limits)) + overhead


def _requested_milli(container: Container) -> int:
    requests, limits = container.resources.requests, container.resources.limits
    return cpu_milli(requests if "cpu" in requests else limits)
