"""The JSON of cAdvisor's REST answers: spec and stats of a container, and the machine."""

from __future__ import annotations

from typing import Any

import msgspec

from services.stats.core.details import Details, parse_details
from services.stats.core.machine import MachineFacts
from services.stats.core.model import CgroupSample, DiskShare, FilesystemSample, NetworkSample, NodeHistory, Texts
from services.stats.core.rates import nano_cores
from shared.kube.times import rfc3339_nano

MAX_UINT64 = (1 << 64) - 1
Json = dict[str, Any]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A cgroup that is told."""

    path: str
    id: str = ""
    name: str = ""
    image: str = ""
    labels: dict[str, str] = {}
    created_at: float = 0.0
    window: tuple[CgroupSample, ...] = ()
    texts: Texts | None = None
    network: NetworkSample | None = None
    shares: tuple[DiskShare, ...] = ()
    filesystem: FilesystemSample | None = None
    device: str = ""


def machine_info(machine: MachineFacts, node: NodeHistory) -> Json:
    """MachineInfo."""
    filesystem = node.filesystem
    cores: dict[tuple[int, int], list[int]] = {}
    for thread, core, socket in machine.topology:
        cores.setdefault((socket, core), []).append(thread)
    return {
        "timestamp": rfc3339_nano(node.window[-1].at if node.window else 0.0),
        "vendor_id": machine.vendor_id,
        "num_cores": machine.cores,
        "num_physical_cores": machine.physical_cores,
        "num_sockets": machine.sockets,
        "cpu_frequency_khz": machine.cpu_khz,
        "memory_capacity": machine.memory,
        "swap_capacity": machine.swap,
        "memory_by_type": {},
        "nvm": {"memory_mode_capacity": 0, "app direct_mode_capacity": 0, "avg_power_budget": 0},
        "hugepages": [],
        "machine_id": machine.machine_id,
        "system_uuid": machine.system_uuid,
        "boot_id": machine.boot_id,
        "filesystems": []
        if filesystem is None
        else [
            {
                "device": node.device,
                "capacity": filesystem.usage.capacity,
                "type": "vfs",
                "inodes": filesystem.usage.inodes,
                "has_inodes": True,
            }
        ],
        "disk_map": {f"{one.major}:{one.minor}": msgspec.structs.asdict(one) for one in machine.blocks},
        "network_devices": [msgspec.structs.asdict(one) for one in machine.networks],
        "topology": [
            {
                "node_id": 0,
                "memory": machine.memory,
                "hugepages": [],
                "cores": [
                    {"core_id": core, "thread_ids": threads, "caches": None, "socket_id": socket}
                    for (socket, core), threads in cores.items()
                ],
                "caches": None,
            }
        ],
        "cloud_provider": "Unknown",
        "instance_type": "Unknown",
        "instance_id": "",
    }


def _details(entry: Entry) -> Details:
    return Details() if entry.texts is None else parse_details(entry.texts)


def spec(entry: Entry) -> Json:
    details = _details(entry)
    cpu: Json = {"limit": details.shares or 0, "max_limit": 0, "period": details.period or 0}
    if details.quota is not None:
        cpu["quota"] = details.quota
    return {
        "creation_time": rfc3339_nano(entry.created_at),
        "labels": entry.labels,
        "has_cpu": True,
        "cpu": cpu,
        "has_memory": True,
        "memory": {
            "limit": details.memory_limit or MAX_UINT64,
            "reservation": details.reservation,
            "swap_limit": details.swap_limit,
        },
        "has_hugetlb": False,
        "has_network": entry.network is not None,
        "has_processes": details.threads is not None,
        "processes": {"limit": details.threads_max},
        "has_filesystem": bool(entry.shares or entry.filesystem),
        "has_diskio": bool(details.devices),
        "has_custom_metrics": False,
        "image": entry.image,
    }


def stats_v1(entry: Entry, at: int) -> Json:
    sample = entry.window[at]
    is_newest = at == len(entry.window) - 1
    details = _details(entry) if is_newest else Details()
    told: Json = {
        "timestamp": rfc3339_nano(sample.at),
        "cpu": {
            "usage": {
                "total": sample.usage.cpu_ns or 0,
                "user": details.user_ns or 0,
                "system": details.system_ns or 0,
            },
            "cfs": {
                "periods": details.periods or 0,
                "throttled_periods": details.throttled_periods or 0,
                "throttled_time": details.throttled_ns or 0,
            },
            "load_average": 0,
        },
        "memory": _memory(sample, details),
    }
    if is_newest:
        told["network"] = _network(entry.network)
        told["filesystem"] = filesystems(entry)
        told["processes"] = _processes(entry, details)
        told["diskio"] = _diskio(details)
    return told


def stats_v2(entry: Entry, at: int) -> Json:
    """As v1, with the rate since the sample before; the first has none."""
    sample = entry.window[at]
    told = stats_v1(entry, at)
    network = told.pop("network", None)
    filesystems = told.pop("filesystem", None)
    if network is not None and entry.network is not None:
        told["network"] = {"interfaces": network["interfaces"]}
    if filesystems and entry.shares:
        told["filesystem"] = {
            "totalUsageBytes": sum(one.size.used_bytes for one in entry.shares),
            "baseUsageBytes": entry.shares[0].size.used_bytes,
            "containter_inode_usage": entry.shares[0].size.inodes,
        }
    if at > 0:
        before = entry.window[at - 1]
        if before.usage.cpu_ns is not None and sample.usage.cpu_ns is not None:
            rate = nano_cores((before.monotonic_ns, before.usage.cpu_ns), (sample.monotonic_ns, sample.usage.cpu_ns))
            if rate is not None:
                told["cpu_inst"] = {"usage": {"total": rate, "user": 0, "system": 0}}
    return told


def _memory(sample: CgroupSample, details: Details) -> Json:
    memory = sample.usage.memory
    if memory is None:
        return {}
    return {
        "usage": memory.usage,
        "max_usage": details.max_usage or 0,
        "cache": details.cache or 0,
        "rss": memory.rss or 0,
        "swap": memory.swap or 0,
        "mapped_file": details.mapped_file or 0,
        "working_set": memory.working_set,
        "total_active_file": details.active_file or 0,
        "total_inactive_file": details.inactive_file or 0,
        "failcnt": details.failcnt or 0,
        "container_data": {"pgfault": memory.page_faults or 0, "pgmajfault": memory.major_page_faults or 0},
        "hierarchical_data": {
            "pgfault": details.hierarchy_faults or 0,
            "pgmajfault": details.hierarchy_major_faults or 0,
        },
    }


def _network(sample: NetworkSample | None) -> Json:
    interfaces = [] if sample is None else [msgspec.structs.asdict(one) for one in sample.interfaces]
    first = next((one for one in interfaces if one["name"] == "eth0"), interfaces[0] if interfaces else {})
    return {**first, "interfaces": interfaces}


def filesystems(entry: Entry) -> list[Json]:
    if entry.filesystem is not None:
        usage = entry.filesystem.usage
        used, base = usage.used, 0
    elif entry.shares:
        usage = entry.shares[0].filesystem
        used, base = sum(one.size.used_bytes for one in entry.shares), entry.shares[0].size.used_bytes
    else:
        return []
    return [
        {
            "device": entry.device,
            "type": "vfs",
            "capacity": usage.capacity,
            "usage": used,
            "base_usage": base,
            "available": usage.available,
            "has_inodes": True,
            "inodes": usage.inodes,
            "inodes_free": usage.inodes_free,
        }
    ]


def _processes(entry: Entry, details: Details) -> Json:
    facts = None if entry.texts is None else entry.texts.processes
    told: Json = {"threads_current": details.threads or 0, "threads_max": details.threads_max}
    if facts is not None:
        told |= {"process_count": facts.count, "fd_count": facts.descriptors, "socket_count": facts.sockets}
    return told


def _diskio(details: Details) -> Json:
    def rows(read: str, write: str) -> list[Json]:
        found: list[Json] = []
        for one in details.devices:
            major, _, minor = one.device.partition(":")
            values = {"Read": getattr(one, read), "Write": getattr(one, write)}
            stats = values | {"Total": sum(values.values())}
            found.append({"device": one.device, "major": int(major), "minor": int(minor), "stats": stats})
        return found

    if not details.devices:
        return {}
    return {"io_service_bytes": rows("read_bytes", "write_bytes"), "io_serviced": rows("reads", "writes")}
