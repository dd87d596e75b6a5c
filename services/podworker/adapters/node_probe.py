"""Gathers what pod configurations and admission need to know of the node: once, at start."""

from __future__ import annotations

import os
import re
from pathlib import Path

from services.podworker.core.admission import NodeLimits, NodeTraits
from services.podworker.core.node_facts import DNSConfig, NodeFacts
from services.podworker.ports import EngineInfo
from shared.kube.allocatable import allocatable_bytes, allocatable_cpu_milli, max_pods
from shared.kube.node_labels import go_architecture, node_labels
from shared.runtime.machine import Machine
from shared.runtime.settings import Settings

_CAP_SYS_RESOURCE = 24


def node_facts(settings: Settings, instance: str, engine: EngineInfo, machine: Machine) -> NodeFacts:
    """Raises OSError when resolvConf is set and can't be read."""
    config = settings.config
    limits = node_limits(settings, machine)
    return NodeFacts(
        instance=instance,
        node_name=settings.node_name,
        data_dir=str(settings.data),
        sandbox_image=settings.sandbox_image,
        memory_bytes=machine.memory_bytes,
        address=machine.address,
        allocatable_cpu_milli=limits.cpu_milli,
        allocatable_memory_bytes=limits.memory_bytes,
        allocatable_storage_bytes=_storage_bytes(settings),
        cgroup_driver=engine.cgroup_driver or "cgroupfs",
        cgroup_root=config.cgroup_root,
        log_root=settings.log_root,
        log_max_bytes=config.log_max_bytes,
        log_max_files=config.log_max_files,
        network=settings.network,
        allow_negative_oom=_may_raise_limits(),
        cluster_dns=tuple(config.cluster_dns),
        cluster_domain=config.cluster_domain,
        host_dns=_host_dns(config.resolv_conf),
    )


def node_limits(settings: Settings, machine: Machine) -> NodeLimits:
    """What admission may hand out."""
    config = settings.config
    reserved = (config.system_reserved, config.kube_reserved)
    return NodeLimits(
        cpu_milli=allocatable_cpu_milli(machine.cores * 1000, *reserved),
        memory_bytes=allocatable_bytes(
            machine.memory_bytes, "memory", "memory.available", config.eviction_hard, *reserved
        ),
        pods=max_pods(config.max_pods, config.pods_per_core, machine.cores),
        traits=NodeTraits(
            name=settings.node_name,
            labels=node_labels(settings.node_name, go_architecture(os.uname().machine)),
            kernel=_kernel_version(os.uname().release),
            allowed_unsafe_sysctls=config.allowed_unsafe_sysctls,
        ),
    )


def _kernel_version(release: str) -> tuple[int, int]:
    """`6.1.0-13-amd64` -> (6, 1)."""
    found = re.match(r"(\d+)\.(\d+)", release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _storage_bytes(settings: Settings) -> int:
    config, disk = settings.config, os.statvfs(settings.data)
    capacity = disk.f_frsize * disk.f_blocks
    reserved = (config.system_reserved, config.kube_reserved)
    return allocatable_bytes(capacity, "ephemeral-storage", "nodefs.available", config.eviction_hard, *reserved)


def _may_raise_limits() -> bool:
    """Without CAP_SYS_RESOURCE in the bounding set no process here can set a negative oom_score_adj."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapBnd:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)
    return False


def _host_dns(path: str) -> DNSConfig:
    """The host's own resolv.conf is what the engine copies anyway: only another file is read."""
    if path in ("", "/etc/resolv.conf"):
        return DNSConfig()
    servers: list[str] = []
    searches: list[str] = []
    options: list[str] = []
    for line in Path(path).read_text().splitlines():
        match line.split():
            case ["nameserver", server, *_]:
                servers.append(server)
            case ["search", *names]:
                searches = names
            case ["options", *words]:
                options = words
    return DNSConfig(servers=tuple(servers), searches=tuple(searches), options=tuple(options))
