"""The normal form that recordings of node agents are compared in: the pod's status, and per container what
Docker was asked for, without times, ids and addresses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent.parent / "golden" / "kubelet-1.20.2"

Json = dict[str, Any]


def golden(case: str) -> Json:
    """What the kubelet 1.20.2 made of a case ("a01"), in the normal form."""
    (path,) = GOLDEN.glob(f"{case}-*.json")
    form: Json = json.loads(path.read_text())
    return form


def normal_status(status: Json, metadata: Json, node: str) -> Json:
    """A v1.PodStatus -> the "pod" part of the normal form."""
    context = [(metadata.get("uid", ""), "<uid>"), (metadata["name"], "<pod>"), (node, "<node>")]
    regular = status.get("containerStatuses") or []
    loops = any(c["restartCount"] for c in regular)
    conditions = {}
    for condition in status.get("conditions", []):
        kind = condition["type"]
        if kind != "PodReadyToStartContainers":
            varies = loops and kind.endswith("Ready")
            conditions[kind] = ["varies"] if varies else _condition(condition, context)
    return {
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "message": normal_text(status.get("message"), context),
        "qosClass": status.get("qosClass"),
        "conditions": conditions,
        "hasIP": bool(status.get("podIP")),
        "hasStartTime": bool(status.get("startTime")),
        "init": {c["name"]: _container(c, context) for c in status.get("initContainerStatuses") or []},
        "containers": {c["name"]: _container(c, context) for c in regular},
    }


def _condition(condition: Json, context: list[tuple[str, str]]) -> list[Any]:
    message = normal_text(condition.get("message"), context)
    return [condition["status"], condition.get("reason"), message]


def _container(status: Json, context: list[tuple[str, str]]) -> Json:
    if status["restartCount"]:
        # A crash loop looks different each second: keep what it crashed of.
        crashed = status["state"] if "terminated" in status["state"] else status.get("lastState", {})
        return {"restarts": "n", "crashed": _state(crashed, context), "image": status["image"]}
    return {
        "restarts": "0",
        "state": _state(status["state"], context),
        "lastState": _state(status.get("lastState", {}), context),
        "ready": status["ready"],
        "started": status.get("started"),
        "image": status["image"],
    }


def _state(state: Json, context: list[tuple[str, str]]) -> Json | None:
    kind = next(iter(state), None)
    if kind is None:
        return None
    shown = ("reason", "message", "exitCode", "signal")
    return {"kind": kind, **{k: normal_text(state[kind][k], context) for k in shown if k in state[kind]}}


def normal_text(text: Any, context: list[tuple[str, str]]) -> Any:
    """Ids, addresses, the pod's and the node's name and back-off seconds -> placeholders."""
    if not isinstance(text, str):
        return text
    for value, placeholder in context:
        if value:
            text = text.replace(value, placeholder)
    text = re.sub(r"\b[0-9a-f]{64}\b", "<id>", text)
    text = re.sub(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "<uid>", text)
    text = re.sub(r"\b172\.\d+\.\d+\.\d+\b", "<ip>", text)
    return re.sub(r"back-off \S+ restarting", "back-off <t> restarting", text)


_HOST_CONFIG = (
    *("CpuShares", "CpuQuota", "CpuPeriod", "Memory", "MemorySwap", "OomScoreAdj", "CapAdd", "CapDrop"),
    *("Privileged", "ReadonlyRootfs", "SecurityOpt", "GroupAdd", "PortBindings", "Sysctls", "Dns", "DnsSearch"),
    *("DnsOptions", "ExtraHosts", "ShmSize"),
)


def normal_docker(inspected: list[Json], status: Json, metadata: Json, node: str) -> Json:
    """`docker inspect` of all containers of a pod -> the "containers" part: the newest of each name."""
    context = [(metadata.get("uid", ""), "<uid>"), (metadata["name"], "<pod>"), (node, "<node>")]
    loops = any(c["restartCount"] for c in status.get("containerStatuses") or [])
    newest_of: dict[str, Json] = {}
    for one in sorted(inspected, key=lambda found: str(found["Created"])):
        newest_of[one["Config"]["Labels"]["io.kubernetes.container.name"]] = one
    return {name: _docker_container(name, one, context, loops=loops) for name, one in sorted(newest_of.items())}


def _docker_container(name: str, one: Json, context: list[tuple[str, str]], *, loops: bool) -> Json:
    config, host = one["Config"], one["HostConfig"]

    def mode(key: str) -> str:
        return re.sub(r"container:.*", "container:<sandbox>", host.get(key) or "")

    env = [e for e in config.get("Env") or [] if not re.match(r"(PATH|HOME|HOSTNAME|KUBERNETES_)", e)]
    return {
        **{key: config.get(key) for key in ("Entrypoint", "Cmd", "User", "WorkingDir")},
        "Hostname": normal_text(config.get("Hostname") if name == "POD" else "", context),
        "Env": sorted(normal_text(e, context) for e in env),
        **{key: config.get(key) for key in ("Tty", "OpenStdin", "StdinOnce")},
        **{key: host.get(key) or None for key in _HOST_CONFIG},
        "NetworkMode": mode("NetworkMode").replace("bridge", "default"),
        "IpcMode": mode("IpcMode"),
        "PidMode": mode("PidMode"),
        "CgroupParent": normal_text(host.get("CgroupParent"), context),
        "Mounts": sorted([m["Destination"], "rw" if m["RW"] else "ro"] for m in one.get("Mounts", [])),
        "Labels": sorted(key for key in config["Labels"] if key.startswith("io.kubernetes.")),
        "ExitCode": "varies" if loops else one["State"].get("ExitCode"),
    }


def differences(left: Any, right: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """Path -> (left's, right's) for every leaf that differs; "<absent>" where one side has nothing."""
    if isinstance(left, dict) and isinstance(right, dict):
        found: dict[str, tuple[Any, Any]] = {}
        for key in sorted({*left, *right}):
            found |= differences(left.get(key, "<absent>"), right.get(key, "<absent>"), f"{path}.{key}")
        return found
    return {} if left == right else {path: (left, right)}
