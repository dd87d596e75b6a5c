"""Where the cgroup of a pod or container is: by name, and from the text of /proc/<pid>/cgroup."""

from __future__ import annotations

from services.stats.core.model import CgroupPath, ContainerTarget


def pods_cgroup(driver: str, cgroup_root: str = "/") -> str:
    """The cgroup above all pods: `/kubepods`, or systemd's slice of that name. `cgroup_root` is
    KubeletConfiguration's."""
    if driver == "systemd":
        levels = [part.removesuffix(".slice") for part in cgroup_root.split("/") if part]
        return path_of_parent("-".join([*levels[-1:], "kubepods"]) + ".slice")
    return path_of_parent(f"{cgroup_root.rstrip('/')}/kubepods")


def path_of_parent(cgroup_parent: str) -> str:
    """Docker's CgroupParent -> the path below the mount point.

    A path stays (cgroupfs). A slice's name unfolds (systemd): each "-" is a level, so
    `kubepods-burstable.slice` is `/kubepods.slice/kubepods-burstable.slice`. "" = none.
    """
    if not cgroup_parent.endswith(".slice") or "/" in cgroup_parent:
        return f"/{cgroup_parent.strip('/')}" if cgroup_parent else ""
    levels = cgroup_parent.removesuffix(".slice").split("-")
    return "".join(f"/{'-'.join(levels[: depth + 1])}.slice" for depth in range(len(levels)))


def parse_proc_cgroup(text: str) -> CgroupPath | None:
    """/proc/<pid>/cgroup -> the paths of the cpu and memory controllers; None when they can't be told.

    v1 has one line per hierarchy (`4:memory:/a/b`), v2 the single line `0::/a/b`; a hybrid system has both
    and accounts by its v1 lines. "/" and paths that climb (`/../..`) are what a private cgroup namespace
    shows: they name nothing below our mount point.
    """
    unified = ""
    by_controller: dict[str, str] = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not _is_usable(path):
            continue
        if not controllers:
            unified = path
        for controller in controllers.split(","):
            by_controller[controller] = path
    cpu = by_controller.get("cpuacct", unified)
    memory = by_controller.get("memory", unified)
    return CgroupPath(cpu=cpu, memory=memory) if cpu and memory else None


def container_candidates(container: ContainerTarget, pod_path: str, proc_text: str | None) -> list[CgroupPath]:
    """Where a container's cgroup may be, likeliest first.

    What the kernel says of its pid comes first, but only if the path names the container: a pid may belong
    to another process by now. Then the places below the pod's cgroup where each cgroup driver puts it, for a
    reader that can't see the host's pids or paths.
    """
    found: list[CgroupPath] = []
    told = parse_proc_cgroup(proc_text) if proc_text else None
    if told is not None and container.id in told.cpu and container.id in told.memory:
        found.append(told)
    if pod_path:
        for leaf in (container.id, f"docker-{container.id}.scope"):
            path = CgroupPath.same(f"{pod_path}/{leaf}")
            if path not in found:
                found.append(path)
    return found


def _is_usable(path: str) -> bool:
    return path.startswith("/") and path != "/" and ".." not in path.split("/")
