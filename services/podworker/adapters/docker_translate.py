"""Docker's JSON <-> podworker's types. Pure; the only place that knows the Engine API's field names.

Engine JSON is untyped: what comes in is `Json`, read with care; what goes out is the body of POST
/containers/create.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from services.podworker.core.container_config import (
    WITHHELD,
    ContainerConfig,
    Mount,
    PortMapping,
    SandboxConfig,
)
from services.podworker.core.hook_labels import handler_from_labels
from services.podworker.core.image_layers import BuildStep, ImageLayers
from services.podworker.core.model import RunState, RuntimeContainer, RuntimePod, RuntimeSandbox
from services.podworker.ports import ImageInfo
from shared.kube import names
from shared.kube.devices import driver_and_id
from shared.kube.times import parse_rfc3339

Json = Mapping[str, Any]

_NO_HEALTHCHECK = {"Test": ["NONE"]}
"""Disables the image's own: probes are ours, and each run of the engine's costs as much as an exec."""
_ZERO_TIME = "0001-01-01T00:00:00Z"
_CONFLICT = re.compile(r'already in use by container "([0-9a-f]{64})"')
_MAX_FILE_NAME = 255
DEFAULT_GRACE_SECONDS = 30


class Listed(msgspec.Struct, frozen=True):
    """What a list tells of a container, enough to see whether it must be inspected again."""

    id: str
    uid: str
    key: str
    """Changes with the state; not with the passing of time."""


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """An inspected container or sandbox, and what the adapter needs of it beside the facts."""

    key: str
    labels: Mapping[str, str]
    fact: RuntimeContainer | RuntimeSandbox
    engine_log: str = ""
    """Path of the json-file on the engine's host; "" with another driver."""
    termination_file: str = ""
    """Host path of the file mounted at terminationMessagePath, or ""."""
    stop_signal: str = ""
    """The image's or config's own; "" = SIGTERM."""


def sandbox_payload(config: SandboxConfig, oom_score_adj: int) -> dict[str, Any]:
    """The body of POST /containers/create for a pod's sandbox."""
    host: dict[str, Any] = {
        **_namespaces(config),
        "CgroupParent": config.cgroup_parent,
        "CpuShares": config.cpu_shares,
        "OomScoreAdj": oom_score_adj,
        "GroupAdd": list(config.groups),
        "SecurityOpt": list(config.security_opts),
        "ShmSize": config.shm_bytes,
        "Sysctls": dict(config.sysctls),
        **_bindings(config.ports),
        **_fixed_host_config(config.log_max_bytes, config.log_max_files),
    }
    payload: dict[str, Any] = {
        "Image": config.image,
        "Hostname": config.hostname,
        "User": config.user,
        "Labels": dict(config.labels),
        "Healthcheck": _NO_HEALTHCHECK,
        "HostConfig": host,
    }
    if config.ports:
        payload["ExposedPorts"] = {_port_key(port): {} for port in config.ports}
    return payload


def container_payload(config: ContainerConfig, oom_score_adj: int, seccomp: str = "") -> dict[str, Any]:
    """The body of POST /containers/create for one attempt of a container. `seccomp`: the profile in its file."""
    security = config.security
    host: dict[str, Any] = {
        **_namespaces(config),
        "CgroupParent": config.cgroup_parent,
        **_devices(config.devices),
        "CpuShares": config.cpu_shares,
        "CpuPeriod": config.cpu_period,
        "CpuQuota": config.cpu_quota,
        "Memory": config.memory,
        # Equal to the memory: no swap.
        "MemorySwap": config.memory,
        "OomScoreAdj": oom_score_adj,
        "GroupAdd": list(config.groups),
        "Privileged": security.privileged,
        "CapAdd": list(security.cap_add),
        "CapDrop": list(security.cap_drop),
        "ReadonlyRootfs": security.read_only_root,
        "SecurityOpt": [*security.options, *([f"seccomp={seccomp}"] if seccomp else [])],
        "ShmSize": config.shm_bytes,
        # Never Binds: they make a missing source directory in silence.
        "Mounts": [_mount(mount) for mount in config.mounts],
        **_fixed_host_config(config.log_max_bytes, config.log_max_files),
    }
    payload: dict[str, Any] = {
        "Image": config.image,
        "Entrypoint": list(config.command) or None,
        "Cmd": list(config.args) or None,
        "Env": list(config.env),
        "WorkingDir": config.working_dir,
        "User": config.user,
        "Tty": config.tty,
        "OpenStdin": config.stdin,
        "StdinOnce": config.stdin_once,
        "Labels": dict(config.labels),
        "Healthcheck": _NO_HEALTHCHECK,
        "HostConfig": host,
    }
    if config.stop_signal:
        payload["StopSignal"] = config.stop_signal
    return payload


def listed(entry: Json) -> Listed:
    """One entry of GET /containers/json."""
    labels = entry.get("Labels") or {}
    return Listed(entry["Id"], labels.get(names.LABEL_POD_UID, ""), _key(entry["State"], entry.get("Status", "")))


def observed(inspect: Json, image: Json | None) -> Observed | None:
    """GET /containers/<id>/json -> the facts; None when it isn't one of a pod's. `image` is its image's
    inspect, when that is still there. The termination message isn't read yet."""
    config = inspect["Config"]
    labels: dict[str, str] = config.get("Labels") or {}
    parsed = names.parse_container_name(inspect.get("Name", ""))
    if not labels.get(names.LABEL_POD_UID):
        return None
    state = inspect["State"]
    if labels.get(names.LABEL_DOCKER_TYPE) == names.TYPE_SANDBOX:
        fact: RuntimeContainer | RuntimeSandbox = _sandbox(inspect, parsed.attempt if parsed else 0)
    else:
        attempt = labels.get(names.ANNOTATION_RESTART_COUNT, "")
        fallback = parsed.attempt if parsed else 0
        fact = _container(inspect, labels, int(attempt) if attempt.isdigit() else fallback, image)
    return Observed(
        key=_inspected_key(state),
        labels=labels,
        fact=fact,
        engine_log=inspect.get("LogPath") or "",
        termination_file=_mount_source(inspect, labels.get(names.ANNOTATION_TERMINATION_PATH, "")),
        stop_signal=config.get("StopSignal") or "",
    )


def runtime_pods(found: Iterable[Observed]) -> dict[str, RuntimePod]:
    """Everything of one instance, grouped by UID, newest first."""
    groups: dict[str, list[Observed]] = {}
    for one in found:
        groups.setdefault(one.labels[names.LABEL_POD_UID], []).append(one)
    return {uid: _pod(uid, members) for uid, members in groups.items()}


def image_info(inspect: Json) -> ImageInfo:
    """GET /images/<name>/json, or one entry of GET /images/json -> ImageInfo."""
    found = [*(inspect.get("RepoDigests") or ()), *(inspect.get("RepoTags") or ())]
    return ImageInfo(
        id=inspect["Id"],
        names=tuple(name for name in found if not name.startswith("<none>") and not name.endswith(":<none>")),
        size=int(inspect.get("Size") or 0),
        user=(inspect.get("Config") or {}).get("User") or "",
    )


def image_layers(inspect: Json, history: Sequence[Json]) -> ImageLayers:
    """GET /images/<name>/json and /images/<name>/history, whose newest step comes first."""
    steps = [BuildStep(size=int(one.get("Size") or 0), command=one.get("CreatedBy") or "") for one in history]
    return ImageLayers(
        layers=tuple((inspect.get("RootFS") or {}).get("Layers") or ()),
        steps=tuple(reversed(steps)),
        size=int(inspect.get("Size") or 0),
    )


def conflicting_id(message: str) -> str | None:
    """The id of the container that holds the name, from the text of a 409."""
    match = _CONFLICT.search(message)
    return match.group(1) if match else None


def container_log_link(labels: Mapping[str, str], container_id: str) -> str:
    """The name of the link in /var/log/containers: `<pod>_<namespace>_<container>-<id>.log`, cut at 255."""
    pod, namespace = labels.get(names.LABEL_POD_NAME, ""), labels.get(names.LABEL_POD_NAMESPACE, "")
    stem = f"{pod}_{namespace}_{labels.get(names.LABEL_CONTAINER_NAME, '')}-{container_id}"
    return stem[: _MAX_FILE_NAME - len(".log")] + ".log"


def _namespaces(config: SandboxConfig | ContainerConfig) -> dict[str, str]:
    return {
        "NetworkMode": config.network_mode,
        "IpcMode": config.ipc_mode,
        "PidMode": config.pid_mode,
        "UTSMode": config.uts_mode,
    }


def _devices(units: Sequence[str]) -> dict[str, Any]:
    """Each only once, though it may stand for several units. Nothing for a container without any."""
    paths = [unit for unit in dict.fromkeys(units) if driver_and_id(unit) is None]
    ids: dict[str, list[str]] = {}
    for unit in dict.fromkeys(units):
        if (pair := driver_and_id(unit)) is not None:
            ids.setdefault(pair[0], []).append(pair[1])
    made: dict[str, Any] = {}
    if paths:
        made["Devices"] = [{"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rwm"} for path in paths]
    if ids:
        made["DeviceRequests"] = [
            {"Driver": driver, "DeviceIDs": found, "Capabilities": [["gpu"]]} for driver, found in ids.items()
        ]
    return made


def _fixed_host_config(log_max_bytes: int, log_max_files: int) -> dict[str, Any]:
    """Restarts, removal and health are podbus' own business, never the engine's."""
    return {
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "AutoRemove": False,
        "LogConfig": {
            "Type": "json-file",
            "Config": {"max-size": str(log_max_bytes), "max-file": str(log_max_files)},
        },
    }


def _mount(mount: Mount) -> dict[str, Any]:
    bind: dict[str, Any] = {
        "Type": "bind",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
    }
    if mount.propagation != "rprivate":  # the engine's own default
        bind["BindOptions"] = {"Propagation": mount.propagation}
    return bind


def _bindings(ports: Sequence[PortMapping]) -> dict[str, Any]:
    bindings: dict[str, list[dict[str, str]]] = {}
    for port in ports:
        binding = {"HostIp": port.host_ip, "HostPort": str(port.host_port)}
        bindings.setdefault(_port_key(port), []).append(binding)
    return {"PortBindings": bindings} if bindings else {}


def _port_key(port: PortMapping) -> str:
    return f"{port.container_port}/{port.protocol.lower()}"


def _key(state: str, status: str) -> str:
    """ "Up 3 minutes (healthy)" and "Exited (137) 2 hours ago" without their times."""
    if status.startswith("Exited"):
        return f"{state} {status.split(')', 1)[0]})"
    return state


def _inspected_key(state: Json) -> str:
    """The key that a list would give for the same state."""
    status = str(state.get("Status", ""))
    return f"{status} Exited ({state.get('ExitCode', 0)})" if status == "exited" else status


def _instant(text: str | None) -> float | None:
    return None if not text or text == _ZERO_TIME else parse_rfc3339(text)


def _run_state(state: Json) -> RunState:
    """dockershim: running (also when paused); exited once it has a finish time, or an exit code without one
    (a start that failed); else created."""
    if state.get("Running"):
        return "running"
    if _instant(state.get("FinishedAt")) is not None or state.get("ExitCode", 0) != 0:
        return "exited"
    return "created"


def _sandbox(inspect: Json, attempt: int) -> RuntimeSandbox:
    state, network = inspect["State"], inspect.get("NetworkSettings") or {}
    running = bool(state.get("Running"))
    return RuntimeSandbox(
        id=inspect["Id"],
        attempt=attempt,
        ready=running,
        created_at=_instant(inspect.get("Created")) or 0.0,
        ips=_addresses(network) if running else (),
        pid=int(state.get("Pid") or 0),
        host_network=(inspect.get("HostConfig") or {}).get("NetworkMode") == "host",
    )


def _addresses(network: Json) -> tuple[str, ...]:
    """The default bridge's address, or that of the named network; IPv4 first."""
    attached = [network, *(network.get("Networks") or {}).values()]
    found = [n.get("IPAddress") or "" for n in attached] + [n.get("GlobalIPv6Address") or "" for n in attached]
    return tuple(dict.fromkeys(address for address in found if address))


def _container(inspect: Json, labels: Mapping[str, str], attempt: int, image: Json | None) -> RuntimeContainer:
    state = inspect["State"]
    run_state = _run_state(state)
    asked = inspect["Config"].get("Image") or ""
    started_at, finished_at = _instant(state.get("StartedAt")), _instant(state.get("FinishedAt"))
    if started_at is not None and finished_at is not None:
        # The engine stamps a start after the process runs: a short one seems to end before it began.
        finished_at = max(started_at, finished_at)
    tags = (image or {}).get("RepoTags") or ()
    digests = (image or {}).get("RepoDigests") or ()
    sidecar = labels.get(names.LABEL_SIDECAR, "")
    host = inspect.get("HostConfig") or {}
    return RuntimeContainer(
        id=inspect["Id"],
        name=labels.get(names.LABEL_CONTAINER_NAME, ""),
        attempt=attempt,
        state=run_state,
        sandbox_id=labels.get(names.LABEL_SANDBOX_ID, ""),
        image=tags[0] if tags else asked,
        image_id=f"docker-pullable://{digests[0]}" if digests else f"docker://{inspect['Image']}",
        created_at=_instant(inspect.get("Created")) or 0.0,
        started_at=started_at,
        finished_at=finished_at if run_state == "exited" else None,
        exit_code=int(state.get("ExitCode") or 0),
        oom_killed=bool(state.get("OOMKilled")),
        error=_start_error(state.get("Error") or "", labels),
        pid=int(state.get("Pid") or 0),
        hash=labels.get(names.ANNOTATION_HASH, ""),
        cpu_shares=int(host.get("CpuShares") or 0),
        cpu_quota=max(0, int(host.get("CpuQuota") or 0)),
        memory=max(0, int(host.get("Memory") or 0)),
        pre_stop=handler_from_labels(labels.get(names.ANNOTATION_PRE_STOP, ""), labels.get(names.ANNOTATION_PORTS, "")),
        sidecar=int(sidecar) if sidecar.isdigit() else None,
    )


def _start_error(text: str, labels: Mapping[str, str]) -> str:
    return WITHHELD if text and names.LABEL_PRIVATE_COMMAND in labels else text


def _mount_source(inspect: Json, target: str) -> str:
    mounts = (inspect.get("HostConfig") or {}).get("Mounts") or ()
    return next((str(m.get("Source", "")) for m in mounts if target and m.get("Target") == target), "")


def _pod(uid: str, members: Sequence[Observed]) -> RuntimePod:
    labels = members[0].labels
    grace = next((one.labels[names.ANNOTATION_GRACE] for one in members if names.ANNOTATION_GRACE in one.labels), "")
    return RuntimePod(
        uid=uid,
        namespace=labels.get(names.LABEL_POD_NAMESPACE, ""),
        name=labels.get(names.LABEL_POD_NAME, ""),
        sandboxes=_newest_first(one.fact for one in members if isinstance(one.fact, RuntimeSandbox)),
        containers=_newest_first(one.fact for one in members if isinstance(one.fact, RuntimeContainer)),
        grace_seconds=int(grace) if grace.isdigit() else DEFAULT_GRACE_SECONDS,
    )


_Fact = TypeVar("_Fact", RuntimeContainer, RuntimeSandbox)


def _newest_first(facts: Iterable[_Fact]) -> tuple[_Fact, ...]:
    """By attempt before time: the wall clock may step back between two attempts."""
    return tuple(sorted(facts, key=lambda fact: (fact.attempt, fact.created_at), reverse=True))
