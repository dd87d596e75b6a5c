"""v1.Pod and v1.Node as rows of kubectl's tables (kubectl 1.36: pkg/printers/internalversion). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.columns import table
from cli.human import NONE, UNKNOWN, epoch, human_duration, since

Object = Mapping[str, Any]

_POD_HEADER = ("NAME", "READY", "STATUS", "RESTARTS", "AGE")
_POD_WIDE = ("IP", "NODE", "NOMINATED NODE", "READINESS GATES")
_NODE_HEADER = ("NAME", "STATUS", "ROLES", "AGE", "VERSION")
_NODE_WIDE = ("INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME")
_CONFIG_SEEN = "kubernetes.io/config.seen"


def pod_table(pods: Sequence[Object], now: float, *, is_wide: bool, has_namespaces: bool) -> str:
    """`kubectl get pods`; now in seconds since the epoch."""
    header = (*(("NAMESPACE",) if has_namespaces else ()), *_POD_HEADER, *(_POD_WIDE if is_wide else ()))
    rows = []
    for pod in pods:
        row = pod_row(pod, now, is_wide=is_wide)
        rows.append([pod["metadata"].get("namespace", ""), *row] if has_namespaces else row)
    return table(header, rows)


def pod_row(pod: Object, now: float, *, is_wide: bool) -> list[str]:
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    ready, total, restarts, last = _counts(spec, status)
    text = str(restarts)
    if restarts and last is not None:
        text = f"{restarts} ({human_duration(now - last)} ago)"
    row = [meta.get("name", ""), f"{ready}/{total}", pod_status(pod), text, since(created(pod), now)]
    if is_wide:
        addresses = status.get("podIPs") or []
        row += [
            (addresses[0].get("ip") if addresses else status.get("podIP")) or NONE,
            spec.get("nodeName") or NONE,
            status.get("nominatedNodeName") or NONE,
            _gates(spec, status),
        ]
    return row


def created(pod: Object) -> str | None:
    """When the pod came to be. A static pod without a mirror has no creationTimestamp: when its source saw it first."""
    meta = pod["metadata"]
    seen: str | None = (
        meta.get("creationTimestamp")
        or (meta.get("annotations") or {}).get(_CONFIG_SEEN)
        or (pod.get("status") or {}).get("startTime")
    )
    return seen


def pod_status(pod: Object) -> str:
    """The STATUS column."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    phase = status.get("phase") or ""
    reason: str = status.get("reason") or phase
    conditions = status.get("conditions") or []
    if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in conditions):
        reason = "SchedulingGated"
    initializing, _ = _initializing(spec, status)
    if initializing:
        reason = initializing
    if not initializing or _is_true(conditions, "Initialized"):
        reason = _containers_reason(status, conditions, reason)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if phase not in ("Succeeded", "Failed"):
            return "Terminating"
    return reason


def _initializing(spec: Object, status: Object) -> tuple[str, int]:
    """("Init:0/2" or "Init:Error", or "" when no init container holds the pod up; how many of them were looked at)."""
    containers = {container["name"]: container for container in spec.get("initContainers") or []}
    statuses = status.get("initContainerStatuses") or []
    for index, container in enumerate(statuses):
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if _is_sidecar(containers.get(container["name"])) and container.get("started"):
            continue
        if terminated is not None:
            return f"Init:{_terminated_reason(terminated)}", index + 1
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}", index + 1
        return f"Init:{index}/{len(containers)}", index + 1
    return "", len(statuses)


def _containers_reason(status: Object, conditions: Sequence[Object], reason: str) -> str:
    has_running = False
    for container in reversed(status.get("containerStatuses") or []):
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            reason = _terminated_reason(terminated)
        elif container.get("ready") and state.get("running") is not None:
            has_running = True
    if reason == "Completed" and has_running:
        return "Running" if _is_true(conditions, "Ready") else "NotReady"
    return reason


def _terminated_reason(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _counts(spec: Object, status: Object) -> tuple[int, int, int, float | None]:
    """(ready, total, restarts, when the last restarted container had ended)."""
    containers = {container["name"]: container for container in spec.get("initContainers") or []}
    sidecars = {name for name, container in containers.items() if _is_sidecar(container)}
    initializing, seen = _initializing(spec, status)
    initial = (status.get("initContainerStatuses") or [])[:seen]
    regular = status.get("containerStatuses") or []
    if initializing and not _is_true(status.get("conditions") or [], "Initialized"):
        counted, ready = initial, 0
    else:
        counted = [*(c for c in initial if c["name"] in sidecars), *regular]
        ready = sum(1 for c in regular if c.get("ready") and (c.get("state") or {}).get("running") is not None)
    ready += sum(1 for c in initial if c["name"] in sidecars and c.get("started") and c.get("ready"))
    ended = [
        moment
        for container in counted
        if (moment := epoch(((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt")))
    ]
    restarts = sum(container.get("restartCount", 0) for container in counted)
    return ready, len(spec.get("containers") or []) + len(sidecars), restarts, max(ended, default=None)


def _gates(spec: Object, status: Object) -> str:
    gates = spec.get("readinessGates") or []
    if not gates:
        return NONE
    conditions = status.get("conditions") or []
    true = sum(1 for gate in gates if _is_true(conditions, gate.get("conditionType")))
    return f"{true}/{len(gates)}"


def _is_sidecar(container: Object | None) -> bool:
    return container is not None and container.get("restartPolicy") == "Always"


def _is_true(conditions: Sequence[Object], kind: str | None) -> bool:
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)


def node_table(nodes: Sequence[Object], now: float, *, is_wide: bool) -> str:
    """`kubectl get nodes`"""
    header = (*_NODE_HEADER, *(_NODE_WIDE if is_wide else ()))
    return table(header, [node_row(node, now, is_wide=is_wide) for node in nodes])


def node_row(node: Object, now: float, *, is_wide: bool) -> list[str]:
    meta, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    info = status.get("nodeInfo") or {}
    row = [
        meta.get("name", ""),
        _node_status(spec, status),
        _roles(meta.get("labels") or {}),
        since(meta.get("creationTimestamp"), now),
        info.get("kubeletVersion", ""),
    ]
    if is_wide:
        addresses = {a.get("type"): a.get("address") for a in reversed(status.get("addresses") or [])}
        row += [
            addresses.get("InternalIP") or NONE,
            addresses.get("ExternalIP") or NONE,
            info.get("osImage") or UNKNOWN,
            info.get("kernelVersion") or UNKNOWN,
            info.get("containerRuntimeVersion") or UNKNOWN,
        ]
    return row


def _node_status(spec: Object, status: Object) -> str:
    ready = [c for c in status.get("conditions") or [] if c.get("type") == "Ready"]
    words = [("Ready" if c.get("status") == "True" else "NotReady") for c in ready] or ["Unknown"]
    if spec.get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(labels: Mapping[str, str]) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix) and key != prefix}
    if legacy := labels.get("kubernetes.io/role"):
        roles.add(legacy)
    return ",".join(sorted(roles)) or NONE
