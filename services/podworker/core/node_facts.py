"""What a pod's configuration needs to know of the node, gathered once at start and given in as a value."""

from __future__ import annotations

from pathlib import PurePosixPath

import msgspec

DEFAULT_LOG_ROOT = "/var/log/pods"
_MAX_FILE_NAME = 255
"""Bytes, on Linux; all these names are ASCII."""


class DNSConfig(msgspec.Struct, frozen=True):
    """The lines of a resolv.conf. All empty = leave the engine's copy of the host's file."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    instance: str
    """The id kept in the data directory: the value of the label `podbus.instance`."""
    node_name: str
    data_dir: str
    """Absolute. `<data>/pods/<uid>` is laid out as the kubelet's root directory."""
    sandbox_image: str
    memory_bytes: int
    """The machine's memory: the base of a Burstable container's oom_score_adj."""
    address: str = ""
    """The node's own, as the status shows it."""
    allocatable_cpu_milli: int = 0
    allocatable_memory_bytes: int = 0
    allocatable_storage_bytes: int = 0
    """What pods may have in all: stands for a limit that isn't set."""
    cgroup_driver: str = "cgroupfs"
    """The engine's: "cgroupfs" or "systemd"."""
    cgroup_root: str = "/"
    """KubeletConfiguration cgroupRoot: `kubepods` is made below it."""
    log_root: str = DEFAULT_LOG_ROOT
    log_max_bytes: int = 10 * 1024 * 1024
    log_max_files: int = 5
    network: str = ""
    """PODBUS_NETWORK; "" = the engine's default bridge."""
    pod_pids_limit: int = 0
    """KubeletConfiguration podPidsLimit; 0 = none."""
    allow_negative_oom: bool = True
    """False where the kernel or the engine refuses a negative oom_score_adj (no CAP_SYS_RESOURCE)."""
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    host_dns: DNSConfig = DNSConfig()
    """Of the host's resolv.conf (KubeletConfiguration resolvConf)."""
    engine_copies_host_dns: bool = True
    """resolvConf is the file that the engine itself gives to containers."""
    seccomp_default: bool = False
    """seccompDefault: without a profile RuntimeDefault is meant, not Unconfined."""


def pod_directory(node: NodeFacts, uid: str) -> str:
    """`<data>/pods/<uid>`, mode 0750."""
    return str(PurePosixPath(node.data_dir, "pods", uid))


def hosts_path(node: NodeFacts, uid: str) -> str:
    """The pod's /etc/hosts, mode 0644, rewritten before each container start."""
    return str(PurePosixPath(pod_directory(node, uid), "etc-hosts"))


def termination_log_path(node: NodeFacts, uid: str, container: str, attempt: int) -> str:
    """The file that the container sees at terminationMessagePath: fresh for each attempt, mode 0666."""
    return str(PurePosixPath(pod_directory(node, uid), "containers", container, f"termination-{attempt}"))


def pod_log_directory(node: NodeFacts, namespace: str, name: str, uid: str) -> str:
    """`/var/log/pods/<namespace>_<name>_<uid>`, mode 0755. Too long a name is cut, never the UID."""
    return str(PurePosixPath(node.log_root, f"{namespace}_{name}"[: _MAX_FILE_NAME - len(uid) - 1] + f"_{uid}"))


def container_log_path(node: NodeFacts, namespace: str, name: str, uid: str, container: str, attempt: int) -> str:
    """`<pod log dir>/<container>/<attempt>.log`: a link to the engine's own log file."""
    return str(PurePosixPath(pod_log_directory(node, namespace, name, uid), container, f"{attempt}.log"))
