"""/metrics/cadvisor: samples -> the page. Rows are the node (id "/"), the pods, their sandboxes and containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from services.stats.core.cadvisor_families import FAMILIES
from services.stats.core.details import Details, oom_kills, parse_details
from services.stats.core.exposition import Page, escaped, seconds
from services.stats.core.live import told_containers, told_pod
from services.stats.core.machine import DiskCounters, MachineFacts
from services.stats.core.model import (
    CgroupSample,
    DiskShare,
    NetworkSample,
    NodeHistory,
    PodHistory,
    PressurePair,
    Texts,
)
from shared.kube.names import SANDBOX_CONTAINER, ContainerName

_MICROSECONDS = 1e6
_NETWORK = (
    ("container_network_receive_bytes_total", "rx_bytes"),
    ("container_network_receive_packets_total", "rx_packets"),
    ("container_network_receive_packets_dropped_total", "rx_dropped"),
    ("container_network_receive_errors_total", "rx_errors"),
    ("container_network_transmit_bytes_total", "tx_bytes"),
    ("container_network_transmit_packets_total", "tx_packets"),
    ("container_network_transmit_packets_dropped_total", "tx_dropped"),
    ("container_network_transmit_errors_total", "tx_errors"),
)


def cadvisor_page(
    node: NodeHistory,
    pods: Iterable[PodHistory],
    machine: MachineFacts,
    *,
    sandbox_image: str,
    engine_version: str,
    now: float,
) -> bytes:
    """The whole page, as of `now`."""
    page = Page(FAMILIES)
    _node(page, node, machine, now)
    for pod in pods:
        if told_pod(pod):
            _pod(page, pod, node, machine, sandbox_image, now)
    _machine(page, machine, engine_version)
    return page.encoded()


class _Row:
    """One cgroup's labels, in the pieces between which a metric's own ones go: they stand sorted by name."""

    def __init__(
        self, page: Page, *, container: str = "", id: str, image: str = "", name: str = "", namespace: str, pod: str
    ) -> None:
        self.lines = page.lines
        self._head = f'{{container="{escaped(container)}"'
        self._middle = f',id="{escaped(id)}",image="{escaped(image)}"'
        self._tail = f',name="{escaped(name)}",namespace="{escaped(namespace)}",pod="{escaped(pod)}"'
        self._plain = f"{self._head}{self._middle}{self._tail}}}"
        self.stamp = ""

    def at(self, instant: float) -> None:
        self.stamp = f" {int(instant * 1000)}"

    def put(self, name: str, value: float | None) -> None:
        if value is not None:
            self.lines[name].append(f"{name}{self._plain} {value}{self.stamp}\n")

    def spec(self, name: str, value: float | None) -> None:
        """Without a time, as all that describes the container."""
        if value is not None:
            self.lines[name].append(f"{name}{self._plain} {value}\n")

    def early(self, name: str, label: str, value: float) -> None:
        """With a label that sorts before `id`."""
        line = f"{name}{self._head},{label}{self._middle}{self._tail}}} {value}{self.stamp}\n"
        self.lines[name].append(line)

    def interface(self, name: str, interface: str, value: int) -> None:
        label = f',interface="{escaped(interface)}"'
        self.lines[name].append(f"{name}{self._head}{self._middle}{label}{self._tail}}} {value}{self.stamp}\n")

    def late(self, name: str, label: str, value: float) -> None:
        """With a label that sorts after `pod`."""
        self.lines[name].append(f"{name}{self._head}{self._middle}{self._tail},{label}}} {value}{self.stamp}\n")

    def failure(self, kind: str, scope: str, value: int | None) -> None:
        if value is not None:
            name = "container_memory_failures_total"
            labels = f'{self._head},failure_type="{kind}"{self._middle}{self._tail},scope="{scope}"}}'
            self.lines[name].append(f"{name}{labels} {value}{self.stamp}\n")


def _node(page: Page, node: NodeHistory, machine: MachineFacts, now: float) -> None:
    if not node.window:
        return
    row = _Row(page, id="/", namespace="", pod="")
    _usage(row, node.window[-1], node.texts, machine, memory_limit=node.memory_total)
    row.put("container_last_seen", int(now))
    row.spec("container_start_time_seconds", None if node.created_at is None else int(node.created_at))
    _network(row, node.network)
    if node.filesystem is not None and node.device:
        row.at(node.filesystem.at)
        usage, device = node.filesystem.usage, f'device="{escaped(node.device)}"'
        row.early("container_fs_usage_bytes", device, usage.used)
        row.early("container_fs_limit_bytes", device, usage.capacity)
        row.early("container_fs_inodes_total", device, usage.inodes)
        row.early("container_fs_inodes_free", device, usage.inodes_free)
        if machine.disk is not None:
            of_cgroup = node.texts is not None and bool(parse_details(node.texts).devices)
            _disk(row, device, machine.disk, with_counts=not of_cgroup)


def _pod(page: Page, pod: PodHistory, node: NodeHistory, machine: MachineFacts, sandbox_image: str, now: float) -> None:
    target = pod.target
    named = {"namespace": target.namespace, "pod": target.name}
    if pod.window:
        row = _Row(page, id=target.cgroup, **named)
        _usage(row, pod.window[-1], pod.texts, machine)
        _seen(row, pod.created_at, now)
    if pod.sandbox_runs and pod.sandbox_window:
        name = ContainerName(SANDBOX_CONTAINER, target.name, target.namespace, target.uid, target.sandbox_attempt)
        row = _Row(
            page,
            container=SANDBOX_CONTAINER,
            id=pod.sandbox_path or f"{target.cgroup}/{target.sandbox_id}",
            image=sandbox_image,
            name=str(name),
            **named,
        )
        _usage(row, pod.sandbox_window[-1], pod.sandbox_texts, machine)
        row.put("container_oom_events_total", oom_kills(pod.sandbox_texts))
        _seen(row, target.sandbox_started_at, now)
        _network(row, pod.network)
        _shares(row, node.device, None, pod.sandbox_logs)
    for container in told_containers(pod):
        one = container.target
        row = _Row(
            page,
            container=one.name,
            id=container.path or f"{target.cgroup}/{one.id}",
            image=one.image,
            name=str(ContainerName(one.name, target.name, target.namespace, target.uid, one.attempt)),
            **named,
        )
        _usage(row, container.window[-1], container.texts, machine)
        row.put("container_oom_events_total", container.oom_events)
        _seen(row, one.started_at, now)
        _shares(row, node.device, container.rootfs, container.logs)


def _seen(row: _Row, started_at: float | None, now: float) -> None:
    row.put("container_last_seen", int(now))
    if started_at:
        row.spec("container_start_time_seconds", int(started_at))


def _usage(
    row: _Row,
    sample: CgroupSample,
    texts: Texts | None,
    machine: MachineFacts,
    memory_limit: int | None = None,
) -> None:
    row.at(sample.at)
    usage = sample.usage
    if usage.cpu_ns:
        row.early("container_cpu_usage_seconds_total", 'cpu="total"', seconds(usage.cpu_ns))
    memory = usage.memory
    if memory is not None:
        row.put("container_memory_usage_bytes", memory.usage)
        row.put("container_memory_working_set_bytes", memory.working_set)
        row.put("container_memory_rss", memory.rss)
        row.put("container_memory_swap", memory.swap)
        row.failure("pgfault", "container", memory.page_faults)
        row.failure("pgmajfault", "container", memory.major_page_faults)
    if usage.pressure is not None:
        for what in ("cpu", "memory", "io"):
            pair: PressurePair | None = getattr(usage.pressure, what)
            if pair is not None:
                row.put(f"container_pressure_{what}_waiting_seconds_total", pair.some.total / _MICROSECONDS)
                row.put(f"container_pressure_{what}_stalled_seconds_total", pair.full.total / _MICROSECONDS)
    if texts is None:
        return
    _details(row, parse_details(texts), machine.devices, memory_limit)
    facts = texts.processes
    if facts is not None:
        row.put("container_processes", facts.count)
        row.put("container_file_descriptors", facts.descriptors)
        row.put("container_sockets", facts.sockets)
        if facts.max_open_files is not None:
            row.late("container_ulimits_soft", 'ulimit="max_open_files"', facts.max_open_files)


def _details(row: _Row, told: Details, devices: Mapping[str, str], memory_limit: int | None) -> None:
    if told.user_ns is not None and told.system_ns is not None:
        row.put("container_cpu_user_seconds_total", seconds(told.user_ns))
        row.put("container_cpu_system_seconds_total", seconds(told.system_ns))
    row.put("container_cpu_cfs_periods_total", told.periods)
    row.put("container_cpu_cfs_throttled_periods_total", told.throttled_periods)
    if told.throttled_ns is not None:
        row.put("container_cpu_cfs_throttled_seconds_total", seconds(told.throttled_ns))
    row.put("container_memory_cache", told.cache)
    row.put("container_memory_mapped_file", told.mapped_file)
    row.put("container_memory_total_active_file_bytes", told.active_file)
    row.put("container_memory_total_inactive_file_bytes", told.inactive_file)
    row.put("container_memory_kernel_usage", told.kernel)
    row.put("container_memory_max_usage_bytes", told.max_usage)
    row.put("container_memory_failcnt", told.failcnt)
    row.failure("pgfault", "hierarchy", told.hierarchy_faults)
    row.failure("pgmajfault", "hierarchy", told.hierarchy_major_faults)
    row.put("container_threads", told.threads)
    row.put("container_threads_max", told.threads_max if told.threads is not None else None)
    for one in told.devices:
        device = f'device="{escaped(devices.get(one.device, ""))}"'
        row.early("container_fs_reads_bytes_total", device, one.read_bytes)
        row.early("container_fs_writes_bytes_total", device, one.write_bytes)
        row.early("container_fs_reads_total", device, one.reads)
        row.early("container_fs_writes_total", device, one.writes)
    row.spec("container_spec_cpu_period", told.period)
    row.spec("container_spec_cpu_quota", told.quota)
    row.spec("container_spec_cpu_shares", told.shares)
    row.spec("container_spec_memory_limit_bytes", memory_limit or told.memory_limit)
    row.spec("container_spec_memory_swap_limit_bytes", told.swap_limit)
    row.spec("container_spec_memory_reservation_limit_bytes", told.reservation)


def _network(row: _Row, sample: NetworkSample | None) -> None:
    if sample is None:
        return
    row.at(sample.at)
    for interface in sample.interfaces:
        for name, field in _NETWORK:
            row.interface(name, interface.name, getattr(interface, field))


def _shares(row: _Row, device: str, rootfs: DiskShare | None, logs: DiskShare | None) -> None:
    """cAdvisor: usage is the writable layer and the logs together; the inodes are those that the layer has."""
    found = [one for one in (rootfs, logs) if one is not None]
    if not found or not device:
        return
    label = f'device="{escaped(device)}"'
    row.at(max(one.size.at for one in found))
    row.early("container_fs_usage_bytes", label, sum(one.size.used_bytes for one in found))
    row.early("container_fs_limit_bytes", label, found[0].filesystem.capacity)
    if rootfs is not None:
        row.early("container_fs_inodes_total", label, rootfs.size.inodes)
        row.early("container_fs_inodes_free", label, 0)


def _disk(row: _Row, device: str, disk: DiskCounters, *, with_counts: bool) -> None:
    """`with_counts`: also those that a cgroup with block accounting told already."""
    if with_counts:
        row.early("container_fs_reads_total", device, disk.reads)
        row.early("container_fs_writes_total", device, disk.writes)
    row.early("container_fs_reads_merged_total", device, disk.reads_merged)
    row.early("container_fs_sector_reads_total", device, disk.sectors_read)
    row.early("container_fs_read_seconds_total", device, disk.read_ms / 1000)
    row.early("container_fs_writes_merged_total", device, disk.writes_merged)
    row.early("container_fs_sector_writes_total", device, disk.sectors_written)
    row.early("container_fs_write_seconds_total", device, disk.write_ms / 1000)
    row.early("container_fs_io_current", device, disk.in_flight)
    row.early("container_fs_io_time_seconds_total", device, disk.busy_ms / 1000)
    row.early("container_fs_io_time_weighted_seconds_total", device, disk.weighted_ms / 1000)


def _machine(page: Page, machine: MachineFacts, engine_version: str) -> None:
    ids = {"boot_id": machine.boot_id, "machine_id": machine.machine_id, "system_uuid": machine.system_uuid}
    page.add("machine_cpu_cores", ids, machine.cores)
    page.add("machine_cpu_physical_cores", ids, machine.physical_cores)
    page.add("machine_cpu_sockets", ids, machine.sockets)
    page.add("machine_memory_bytes", ids, machine.memory)
    page.add("machine_swap_bytes", ids, machine.swap)
    page.add("machine_nvm_avg_power_budget_watts", ids, 0)
    for mode in ("app_direct_mode", "memory_mode"):
        page.add("machine_nvm_capacity", {**ids, "mode": mode}, 0)
    page.add("machine_scrape_error", {}, 0)
    page.add("container_scrape_error", {}, 0)
    page.add(
        "cadvisor_version_info",
        {
            "cadvisorRevision": "",
            "cadvisorVersion": "",
            "dockerVersion": engine_version,
            "kernelVersion": machine.kernel_version,
            "osVersion": machine.os_version,
        },
        1,
    )
