"""What every process measures of itself: the machine's view of it, its traffic on the bus, its databases."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from shared.bus import Bus
from shared.runtime.metrics import Labels, Metrics


class DatabaseUse(Protocol):
    transactions: int
    failures: int
    seconds: float


class Database(Protocol):
    """A shared.storage file; who has none doesn't load SQLite."""

    @property
    def path(self) -> Path: ...
    @property
    def use(self) -> DatabaseUse: ...


_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def process_metrics(metrics: Metrics, process: str) -> None:
    """The names are Prometheus' client libraries'. Of all processes of a node together: time and memory added up, the
    oldest start, the most descriptors against the lowest limit."""
    started_at = time.time() - _age_seconds()

    def fixed(value: Callable[[], float]) -> Callable[[], dict[Labels, float]]:
        return lambda: {(): value()}

    def own(value: Callable[[], float]) -> Callable[[], dict[Labels, float]]:
        return lambda: {(process,): value()}

    metrics.gauge(
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
        (),
        fixed(_cpu_seconds),
        kind="counter",
    )
    metrics.gauge("process_resident_memory_bytes", "Resident memory size in bytes.", (), fixed(_resident_bytes))
    metrics.gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", (), fixed(_virtual_bytes))
    metrics.gauge("process_open_fds", "Number of open file descriptors.", (), fixed(_open_files), merge="max")
    metrics.gauge("process_max_fds", "Maximum number of open file descriptors.", (), fixed(_most_files), merge="min")
    metrics.gauge(
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        (),
        fixed(lambda: started_at),
        merge="min",
    )
    metrics.gauge(
        "podbus_process_cpu_seconds_total",
        "User and system CPU time of one process of the node.",
        ("process",),
        own(_cpu_seconds),
        kind="counter",
    )
    metrics.gauge(
        "podbus_process_resident_memory_bytes",
        "Resident memory of one process of the node; pages that it shares with others are counted in each.",
        ("process",),
        own(_resident_bytes),
    )
    metrics.gauge(
        "podbus_process_start_time_seconds",
        "When one process of the node was started, since unix epoch.",
        ("process",),
        own(lambda: started_at),
    )


def bus_metrics(metrics: Metrics, bus: Bus, process: str) -> None:
    def messages() -> dict[Labels, float]:
        traffic = bus.traffic()
        return {(process, "in"): traffic.messages_in, (process, "out"): traffic.messages_out}

    def octets() -> dict[Labels, float]:
        traffic = bus.traffic()
        return {(process, "in"): traffic.bytes_in, (process, "out"): traffic.bytes_out}

    labels = ("process", "direction")
    metrics.gauge(
        "podbus_bus_messages_total", "Messages that a process sent and got.", labels, messages, kind="counter"
    )
    metrics.gauge("podbus_bus_bytes_total", "Payload that a process sent and got.", labels, octets, kind="counter")
    metrics.gauge(
        "podbus_bus_reconnects_total",
        "Connections to the bus that a process made after its first.",
        ("process",),
        lambda: {(process,): bus.traffic().reconnects},
        kind="counter",
    )
    metrics.gauge(
        "podbus_bus_connected",
        "Whether a process has its connection to the bus.",
        ("process",),
        lambda: {(process,): float(bus.connected)},
    )


def database_metrics(metrics: Metrics, process: str, files: Iterable[Database]) -> None:
    """Connections to one file are told as one."""
    by_name: dict[str, list[Database]] = {}
    for file in files:
        by_name.setdefault(file.path.name, []).append(file)

    def each(value: Callable[[Database], float]) -> Callable[[], dict[Labels, float]]:
        return lambda: {(process, name): sum(map(value, files)) for name, files in by_name.items()}

    labels = ("process", "database")
    metrics.gauge(
        "podbus_database_transactions_total",
        "Transactions that a process has made.",
        labels,
        each(lambda file: file.use.transactions),
        kind="counter",
    )
    metrics.gauge(
        "podbus_database_transaction_errors_total",
        "Transactions that failed: a full disk, a lock that was held too long, a damaged file.",
        labels,
        each(lambda file: file.use.failures),
        kind="counter",
    )
    metrics.gauge(
        "podbus_database_transaction_seconds_total",
        "Time that transactions took, waits for locks included.",
        labels,
        each(lambda file: file.use.seconds),
        kind="counter",
    )
    metrics.gauge(
        "podbus_database_size_bytes",
        "A database file with its log.",
        ("database",),
        lambda: {(name,): _size_bytes(files[0].path) for name, files in by_name.items()},
        merge="max",
    )


def _size_bytes(path: Path) -> float:
    total = 0
    for part in (path, path.with_name(f"{path.name}-wal")):
        try:
            total += part.stat().st_size
        except OSError:
            continue
    return total


def _cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system


def _statm(column: int) -> float:
    return int(Path("/proc/self/statm").read_bytes().split()[column]) * _PAGE_BYTES


def _virtual_bytes() -> float:
    return _statm(0)


def _resident_bytes() -> float:
    return _statm(1)


def _open_files() -> float:
    return sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1  # the one that lists them is among them


def _most_files() -> float:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _age_seconds() -> float:
    """Since this process was forked."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
