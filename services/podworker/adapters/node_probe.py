"""Gathers what pod configurations and admission need to know of the node: once, at start."""

from __future__ import annotations

import os
import re
from pathlib import Path

from services.podworker.adapters.host_files import HostFiles
from services.podworker.core.admission import NodeLimits, NodeTraits
from services.podworker.core.dns import parse_resolv_conf
from services.podworker.core.image_gc import GcPolicy
from services.podworker.core.node_facts import DNSConfig, NodeFacts
from services.podworker.ports import EngineInfo
from shared.kube.allocatable import allocatable_bytes, allocatable_cpu_milli, max_pods
from shared.kube.devices import Devices
from shared.kube.node_labels import go_architecture, node_labels
from shared.kube.quantity import Quantity, QuantityFormat
from shared.runtime.config import KubeletConfig
from shared.runtime.machine import Machine
from shared.runtime.settings import Settings

_CAP_SYS_RESOURCE = 24
_RESOLV_CONF = "/etc/resolv.conf"
_RESOLVED = "/run/systemd/resolve/resolv.conf"
_STUB = "127.0.0.53"


def node_facts(settings: Settings, instance: str, engine: EngineInfo, machine: Machine, host: HostFiles) -> NodeFacts:
    """Raises OSError when resolvConf is set and can't be read."""
    config = settings.config
    limits = node_limits(settings, machine, engine)
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
        pod_pids_limit=max(0, config.pod_pids_limit),
        log_root=settings.log_root,
        log_max_bytes=config.log_max_bytes,
        log_max_files=config.log_max_files,
        network=settings.network,
        allow_negative_oom=_may_raise_limits(),
        cluster_dns=tuple(config.cluster_dns),
        cluster_domain=config.cluster_domain,
        host_dns=_host_dns(config.resolv_conf, host),
        seccomp_default=config.seccomp_default,
        engine_copies_host_dns=_is_the_engines(config.resolv_conf),
    )


def node_limits(settings: Settings, machine: Machine, engine: EngineInfo) -> NodeLimits:
    """What admission may hand out."""
    config = settings.config
    reserved = (config.system_reserved, config.kube_reserved)
    return NodeLimits(
        cpu_milli=allocatable_cpu_milli(machine.cores * 1000, *reserved),
        memory_bytes=allocatable_bytes(
            machine.memory_bytes, "memory", "memory.available", config.eviction_hard, *reserved
        ),
        amounts={"ephemeral-storage": _storage_bytes(settings), **_huge_pages(), **_counted(settings.devices)},
        devices=settings.devices,
        pods=max_pods(config.max_pods, config.pods_per_core, machine.cores),
        traits=NodeTraits(
            name=settings.node_name,
            labels=node_labels(settings.node_name, go_architecture(os.uname().machine)),
            kernel=_kernel_version(os.uname().release),
            allowed_unsafe_sysctls=config.allowed_unsafe_sysctls,
            has_app_armor=any("name=apparmor" in option.split(",") for option in engine.security_options),
        ),
    )


def _counted(devices: Devices) -> dict[str, int]:
    return {name: len(units) for name, units in devices.items()}


def _huge_pages() -> dict[str, int]:
    """Bytes of each size that the kernel keeps."""
    found = {}
    for directory in Path("/sys/kernel/mm/hugepages").glob("hugepages-*kB"):
        size = int(directory.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        name = f"hugepages-{Quantity.from_value(size, QuantityFormat.BINARY_SI)}"
        found[name] = size * int((directory / "nr_hugepages").read_text())
    return found


def gc_policy(config: KubeletConfig) -> GcPolicy:
    return GcPolicy(
        high_percent=config.image_gc_high_percent,
        low_percent=config.image_gc_low_percent,
        min_age=config.image_min_age_seconds,
        max_age=config.image_max_age_seconds,
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


def _is_the_engines(path: str) -> bool:
    """The host's own resolv.conf is what the engine copies."""
    return path in ("", _RESOLV_CONF)


def _host_dns(path: str, host: HostFiles) -> DNSConfig:
    """Of a host that resolves for itself (systemd-resolved) what that asks: pods can't reach its loopback. The engine
    does so, too."""
    if not _is_the_engines(path):
        return parse_resolv_conf(host.read_text(path))
    try:
        found = parse_resolv_conf(host.read_text(_RESOLV_CONF))
        return parse_resolv_conf(host.read_text(_RESOLVED)) if found.servers == (_STUB,) else found
    except OSError:
        return DNSConfig()  # as the engine takes it
