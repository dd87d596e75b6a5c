"""QoS class, cpu shares and quota, memory limit, oom_score_adj, cgroup parent (lifecycle 7.6, node.md 8)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from services.podworker.core.node_facts import NodeFacts
from services.podworker.core.pod_resources import amount_of, has_pod_level, milli_value, pod_request, value
from shared.kube.pod import Container, Pod, Quantities, ResourceRequirements, is_sidecar
from shared.kube.status import QOSClass

CPU_PERIOD_MICROSECONDS = 100_000
MIN_CPU_SHARES = 2
MAX_CPU_SHARES = 262_144
MIN_CPU_QUOTA_MICROSECONDS = 1000
SANDBOX_OOM_SCORE_ADJ = -998
GUARANTEED_OOM_SCORE_ADJ = -997
BEST_EFFORT_OOM_SCORE_ADJ = 1000
NODE_CRITICAL = "system-node-critical"
_COUNTED = ("cpu", "memory")


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


def qos_class(pod: Pod) -> QOSClass:
    """Over cpu and memory of all containers, init containers included; of the pod's own resources alone if it has any.

    kubelet: BestEffort when nothing above zero is set; Guaranteed when every container has both limits and
    the sums of requests equal those of limits; else Burstable.
    """
    if has_pod_level(pod):
        each = [pod.spec.resources]
        requests = {name: amount for name in _COUNTED if (amount := pod_request(pod, name, with_overhead=False))}
        limits = {name: amount for name in _COUNTED if (amount := amount_of(pod.spec.resources.limits, name))}
    else:
        each = [container.resources for container in (*pod.spec.init_containers, *pod.spec.containers)]
        requests, limits = _totals(one.requests for one in each), _totals(one.limits for one in each)
    if not requests and not limits:
        return "BestEffort"
    if requests == limits and all(_has_both_limits(one) for one in each):
        return "Guaranteed"
    return "Burstable"


def _has_both_limits(resources: ResourceRequirements) -> bool:
    limits = resources.limits
    return cpu_milli(limits) > 0 and memory_bytes(limits) > 0


def _totals(resources: Iterable[Quantities]) -> dict[str, int]:
    """Sums in milli units of cpu and memory amounts above zero; what nobody sets isn't there."""
    totals: dict[str, int] = {}
    for quantities in resources:
        for name in _COUNTED:
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
            more = _shared_out(pod)
            request = memory_bytes(container.resources.requests) + more
            if container in pod.spec.init_containers and is_sidecar(container):
                # kubelet: a sidecar goes no earlier than the regular containers that it serves.
                request = max(
                    request, min(memory_bytes(c.resources.requests) + _shared_out(pod) for c in pod.spec.containers)
                )
            share = 1000 * request // node_memory if node_memory > 0 else 0
            # kubelet: 3 keeps it above a Guaranteed pod, 999 below a BestEffort one.
            return max(3, min(999, 1000 - share))


def _shared_out(pod: Pod) -> int:
    """kubelet: what the pod requests beyond its containers' own requests counts for each of them in equal parts."""
    if "memory" not in pod.spec.resources.requests:
        return 0
    own = sum(memory_bytes(c.resources.requests) for c in pod.spec.containers)
    return max(0, memory_bytes(pod.spec.resources.requests) - own) // len(pod.spec.containers)


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
