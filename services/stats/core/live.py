"""Which pods and containers are told: those of which something runs."""

from __future__ import annotations

from services.stats.core.model import ContainerHistory, PodHistory


def told_pod(pod: PodHistory) -> bool:
    """kubelet 1.36: a pod without a start time isn't told. Neither is one of which nothing runs any more, although
    its cgroup may still be there: that would be zeros with a fresh time."""
    return pod.target.start_time is not None and bool(pod.sandbox_runs or told_containers(pod))


def told_containers(pod: PodHistory) -> list[ContainerHistory]:
    """One live instance per name, the newest, in the order of the names' first appearance.

    An instance whose cgroup is gone has no window. One that holds no memory at all has no process:
    metrics-server drops a whole pod for one container that reads 0 (kubernetes#103368), so it isn't told
    either.
    """
    newest: dict[str, ContainerHistory] = {}
    for one in pod.containers:
        if not one.window:
            continue
        memory = one.window[-1].usage.memory
        if memory is not None and memory.usage == 0:
            continue
        known = newest.get(one.target.name)
        if known is None or known.target.started_at <= one.target.started_at:
            newest[one.target.name] = one
    return list(newest.values())
