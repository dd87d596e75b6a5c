"""QoS class, cpu shares and quota, memory limit, oom_score_adj, cgroup parent (lifecycle 7.6, node.md 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath

from services.podworker.core.node_facts import NodeFacts
from shared.kube.pod import Container, Pod, is_sidecar
from shared.kube.quantity import Quantity
from shared.kube.status import QOSClass

CPU_PERIOD_MICROSECONDS = 100_000
MIN_CPU_SHARES = 2
MAX_CPU_SHARES = 262_144
MIN_CPU_QUOTA_MICROSECONDS = 1000
SANDBOX_OOM_SCORE_ADJ = -998
GUARANTEED_OOM_SCORE_ADJ = -997
BEST_EFFORT_OOM_SCORE_ADJ = 1000
NODE_CRITICAL = "system-node-critical"

Quantities = Mapping[str, str | int | float]


def milli_value(text: str | int | float) -> int:
    """A quantity as thousandths, rounded up. Raises QuantityError when it isn't one."""
    return Quantity.parse(str(text)).milli()


def value(text: str | int | float) -> int:
    """A quantity as whole units, rounded up. Raises QuantityError when it isn't one."""
    return Quantity.parse(str(text)).value()


def cpu_milli(quantities: Quantities) -> int:
    """The cpu entry in thousandths of a core; 0 when there is none."""
    return milli_value(quantities.get("cpu", 0))


def memory_bytes(quantities: Quantities) -> int:
    """The memory entry in bytes; 0 when there is none."""
    return value(quantities.get("memory", 0))


def cpu_shares(container: Container) -> int:
    """From the request, else from the limit, else the minimum."""
    requests, limits = container.resources.requests, container.resources.limits
    milli = cpu_milli(requests if "cpu" in requests else limits)
    return max(MIN_CPU_SHARES, min(MAX_CPU_SHARES, milli * 1024 // 1000))


def cpu_quota(container: Container) -> int:
    """Microseconds of cpu time per period of 100 ms; 0 = unlimited."""
    milli = cpu_milli(container.resources.limits)
    return max(MIN_CPU_QUOTA_MICROSECONDS, milli * CPU_PERIOD_MICROSECONDS // 1000) if milli else 0


def memory_limit(container: Container) -> int:
    """Bytes; 0 = unlimited."""
    return memory_bytes(container.resources.limits)


def needed_at_once(pod: Pod, amount: Callable[[Container], int]) -> int:
    """The most that the pod needs at any moment of its life of what `amount` says for each container.

    kubelet: the regular containers with all sidecars, or an init container with the sidecars that run already.
    """
    sidecars = most = 0
    for container in pod.spec.init_containers:
        if is_sidecar(container):
            sidecars += amount(container)
            most = max(most, sidecars)
        else:
            most = max(most, sidecars + amount(container))
    return max(most, sidecars + sum(amount(container) for container in pod.spec.containers))


def qos_class(pod: Pod) -> QOSClass:
    """Over cpu and memory of all containers, init containers included.

    kubelet: BestEffort when nothing above zero is set; Guaranteed when every container has both limits and
    the sums of requests equal those of limits; else Burstable.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    requests = _totals(c.resources.requests for c in containers)
    limits = _totals(c.resources.limits for c in containers)
    if not requests and not limits:
        return "BestEffort"
    if requests == limits and all(_has_both_limits(c) for c in containers):
        return "Guaranteed"
    return "Burstable"


def _has_both_limits(container: Container) -> bool:
    limits = container.resources.limits
    return cpu_milli(limits) > 0 and memory_bytes(limits) > 0


def _totals(resources: Iterable[Quantities]) -> dict[str, int]:
    """Sums in milli units of cpu and memory amounts above zero; what nobody sets isn't there."""
    totals: dict[str, int] = {}
    for quantities in resources:
        for name in ("cpu", "memory"):
            amount = milli_value(quantities.get(name, 0))
            if amount > 0:
                totals[name] = totals.get(name, 0) + amount
    return totals


def oom_score_adj(pod: Pod, container: Container, node: NodeFacts) -> int:
    """The kernel's preference for killing this container, clamped to 0 where a negative one is refused."""
    return clamped_oom(_oom_score_adj(pod, container, node.memory_bytes), node)


def _oom_score_adj(pod: Pod, container: Container, node_memory: int) -> int:
    if pod.spec.priority_class_name == NODE_CRITICAL:
        return GUARANTEED_OOM_SCORE_ADJ
    match qos_class(pod):
        case "Guaranteed":
            return GUARANTEED_OOM_SCORE_ADJ
        case "BestEffort":
            return BEST_EFFORT_OOM_SCORE_ADJ
        case "Burstable":
            request = memory_bytes(container.resources.requests)
            if container in pod.spec.init_containers and is_sidecar(container):
                # kubelet: a sidecar goes no earlier than the regular containers that it serves.
                request = max(request, min(memory_bytes(c.resources.requests) for c in pod.spec.containers))
            share = 1000 * request // node_memory if node_memory > 0 else 0
            # kubelet: 3 keeps it above a Guaranteed pod, 999 below a BestEffort one.
            return max(3, min(999, 1000 - share))


def clamped_oom(score: int, node: NodeFacts) -> int:
    """0 for a negative score where the node can't set one."""
    return score if score >= 0 or node.allow_negative_oom else 0


def cgroup_parent(pod: Pod, node: NodeFacts) -> str:
    """The pod's cgroup as Docker's CgroupParent wants it: a path (cgroupfs) or a slice's name (systemd)."""
    qos = qos_class(pod)
    tiers = ["kubepods"] if qos == "Guaranteed" else ["kubepods", qos.lower()]
    pod_part = f"pod{pod.metadata.uid}"
    if node.cgroup_driver == "systemd":
        root = [part.removesuffix(".slice") for part in PurePosixPath(node.cgroup_root).parts if part != "/"]
        # systemd reads "-" as a level of the hierarchy, hence the underscores in the UID.
        return "-".join([*root[-1:], *tiers, pod_part.replace("-", "_")]) + ".slice"
    return str(PurePosixPath("/", node.cgroup_root, *tiers, pod_part))
