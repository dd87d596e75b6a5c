"""What ended pods leave on the node, removed by `podbus down --pods`: no agent is there to do it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from cli.engine import Engine, EngineError
from shared.runtime.settings import Settings


def cgroup_roots(engine: Engine, containers: Iterable[str]) -> set[str]:
    """What `kubepods` stands below for these containers; "/" without any."""
    found = {"/"}
    for container in containers:
        try:
            parent = str(engine.inspect(container)["HostConfig"].get("CgroupParent") or "")
        except EngineError:
            continue
        if "/kubepods/" in parent:
            found.add(parent.partition("/kubepods/")[0] or "/")
    return found


def log_roots(log_paths: Iterable[str]) -> set[str]:
    """The directories of log links: the node's, and that of each container's `<root>/<pod>/<container>/<n>.log`."""
    default = os.environ.get("PODBUS_POD_LOGS") or Settings.log_root
    paths = (PurePosixPath(path) for path in log_paths)
    return {default, *(str(path.parents[2]) for path in paths if path.is_absolute() and len(path.parents) > 3)}


def remove_leftovers(data: Path, uids: Iterable[str], logs: Iterable[str], cgroups: Iterable[str]) -> list[str]:
    """Directories, log links and cgroups of these pods and of all that were left before; what stays."""
    from services.podworker.adapters.cgroup_parent import PodCgroups
    from services.podworker.adapters.pod_files import PodFiles

    pods = data / "pods"
    found = {*uids, *(path.name for path in (pods.iterdir() if pods.is_dir() else ()))}
    for uid in sorted(uid for uid in found if uid):
        for root in cgroups:
            PodCgroups(cgroup_root=root).remove(uid)
        for directory in logs:
            PodFiles(data, Path(directory), Path(directory).parent / "containers").remove_pod(uid)
    return [f"{path} stays: something is mounted there" for path in (pods.iterdir() if pods.is_dir() else ())]
