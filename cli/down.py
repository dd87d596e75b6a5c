"""`podbus down [--pods]`: end the agent; with --pods every pod of this data directory too, agent or not."""

from __future__ import annotations

import argparse
import fcntl
import os
import select
import signal
import struct
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.console import complain
from cli.engine import Engine, EngineError
from cli.leftovers import cgroup_roots, log_roots, remove_leftovers
from cli.running import Running, running, supervisor_lock
from services.podworker.adapters.mounting import unmount_below
from shared.kube import names
from shared.runtime.paths import DataPaths

AGENT_SECONDS = 30.0
_WORKER_SECONDS = 15.0
"""Workers whose supervisor was killed drain for so long at most."""
_DEFAULT_GRACE = 30
_SANDBOX_GRACE = 2
_SIDE_BY_SIDE = 16
_FLOCK = struct.Struct("hhqqi4x")


def down(arguments: argparse.Namespace) -> int:
    """The command: 0 when nothing runs any more that should not."""
    paths = DataPaths(Path(arguments.data).absolute())
    try:
        agent = running(paths)
        if agent is None:
            print("podbus is not running" + ("" if paths.data.is_dir() else f": there is no directory {paths.data}"))
        elif not end_agent(agent):
            complain([f"the supervisor (pid {agent.pid}) didn't end within {AGENT_SECONDS:.0f} s"])
            return 1
        else:
            print("podbus has ended" + ("" if arguments.pods else "; the pods keep running"))
        return _end_all_pods(paths) if arguments.pods else 0
    except PermissionError as error:
        complain([f"{error.filename}: permission denied; use sudo"])
        return 1


def end_agent(agent: Running) -> bool:
    """SIGTERM, then wait. False when it hasn't ended in time. Raises PermissionError."""
    try:
        handle = os.pidfd_open(agent.pid)
    except ProcessLookupError:
        return True
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        return bool(select.select([handle], [], [], AGENT_SECONDS)[0])
    except ProcessLookupError:
        return True
    finally:
        os.close(handle)


def workers_run(paths: DataPaths) -> bool:
    """Whether a podworker of this data directory lives, under any supervisor: it holds locks in owners.lock."""
    try:
        fd = os.open(paths.owners_lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))[0]
        return bool(kind != fcntl.F_UNLCK)
    finally:
        os.close(fd)


@dataclass
class LeftPod:
    """A pod as the labels of its containers tell it."""

    name: str
    uid: str = ""
    grace: int = _DEFAULT_GRACE
    log_paths: list[str] = field(default_factory=list)
    containers: list[str] = field(default_factory=list)
    sandboxes: list[str] = field(default_factory=list)


def left_pods(containers: Iterable[dict[str, Any]]) -> list[LeftPod]:
    """The engine's list of containers, by pod."""
    pods: dict[str, LeftPod] = {}
    for container in containers:
        labels: dict[str, str] = container.get("Labels") or {}
        uid = labels.get(names.LABEL_POD_UID, "")
        name = f"{labels.get(names.LABEL_POD_NAMESPACE, '')}/{labels.get(names.LABEL_POD_NAME, uid)}"
        pod = pods.setdefault(uid, LeftPod(name, uid))
        if labels.get(names.LABEL_DOCKER_TYPE) == names.TYPE_SANDBOX:
            pod.sandboxes.append(container["Id"])
            continue
        pod.containers.append(container["Id"])
        pod.log_paths.append(labels.get(names.LABEL_LOG_PATH, ""))
        text = labels.get(names.ANNOTATION_GRACE, "")
        if text.isdecimal():
            pod.grace = int(text)
    return sorted(pods.values(), key=lambda pod: pod.name)


def _end_all_pods(paths: DataPaths) -> int:
    if not paths.instance_file.exists():
        print(f"{paths.data} has no pods: no node was ever started there")
        return 0
    instance = paths.instance_file.read_text().strip()
    lock = supervisor_lock(paths)
    if not lock.try_acquire():
        complain(["another `podbus up` has started meanwhile"])
        return 1
    try:
        deadline = time.monotonic() + _WORKER_SECONDS
        while workers_run(paths):
            if time.monotonic() > deadline:
                complain([f"a podworker still runs on {paths.data} and would start the pods again: stop it first"])
                return 1
            time.sleep(0.1)
        engine = Engine(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock")
        try:
            pods = left_pods(engine.containers(f"{names.LABEL_INSTANCE}={instance}"))
        except EngineError as error:
            complain([f"Docker Engine: {error}"])
            return 1
        cgroups = cgroup_roots(engine, (pod.sandboxes[0] for pod in pods if pod.sandboxes))
        with ThreadPoolExecutor(max_workers=max(1, len(pods))) as pool:
            faults = [fault for fault in pool.map(lambda pod: _end_pod(engine, pod), pods) if fault]
        faults += _unmount_volumes(paths)
        if not faults:
            uids, log_paths = (pod.uid for pod in pods), (path for pod in pods for path in pod.log_paths)
            faults = remove_leftovers(paths.data, uids, log_roots(log_paths), cgroups)
        complain(faults)
        return 1 if faults else 0
    finally:
        lock.release()


def _unmount_volumes(paths: DataPaths) -> list[str]:
    """Volumes in memory would hold it, and Secrets, until the next reboot."""
    try:
        unmount_below(paths.data / "pods")
    except OSError as error:
        return [f"a volume is still mounted: {error}"]
    return []


def _end_pod(engine: Engine, pod: LeftPod) -> str:
    """Its containers side by side with the pod's grace, then its sandboxes; "", or what went wrong."""
    try:
        with ThreadPoolExecutor(max_workers=_SIDE_BY_SIDE) as pool:
            list(pool.map(lambda container: engine.stop(container, pod.grace), pod.containers))
        for container in pod.containers:
            engine.remove(container)
        for sandbox in pod.sandboxes:
            engine.stop(sandbox, _SANDBOX_GRACE)
            engine.remove(sandbox)
    except EngineError as error:
        return f"{pod.name}: {error}"
    print(f"{pod.name} has ended")
    return ""
