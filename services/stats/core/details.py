"""The texts of a cgroup's files -> what pages for Prometheus and cAdvisor's answers tell beside CPU and memory."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from services.stats.core.model import Texts
from services.stats.core.parse_cgroup import UNLIMITED, find_counter, parse_number

_TICK_NS = 10_000_000
"""Of cpuacct.stat: USER_HZ is 100 on every architecture."""
_NO_QUOTA_PERIOD = 100_000


class DeviceCounters(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a cgroup read from and wrote to one block device."""

    device: str
    """`major:minor`."""
    read_bytes: int = 0
    write_bytes: int = 0
    reads: int = 0
    writes: int = 0


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """None = the kernel doesn't tell."""

    user_ns: int | None = None
    system_ns: int | None = None
    shares: int | None = None
    quota: int | None = None
    """Microseconds a period; None = unlimited."""
    period: int | None = None
    periods: int | None = None
    throttled_periods: int | None = None
    throttled_ns: int | None = None
    memory_limit: int = 0
    """0 = unlimited, also the next two."""
    swap_limit: int = 0
    reservation: int = 0
    cache: int | None = None
    mapped_file: int | None = None
    active_file: int | None = None
    inactive_file: int | None = None
    kernel: int | None = None
    max_usage: int | None = None
    failcnt: int | None = None
    hierarchy_faults: int | None = None
    hierarchy_major_faults: int | None = None
    oom_kills: int | None = None
    threads: int | None = None
    threads_max: int = 0
    """0 = unlimited."""
    devices: tuple[DeviceCounters, ...] = ()


def parse_details(texts: Texts) -> Details:
    return _v1(texts.files) if texts.version == 1 else _v2(texts.files)


def oom_kills(texts: Texts | None) -> int:
    """Kills for memory in this very cgroup, by its own counter."""
    if texts is None:
        return 0
    file = "memory.oom_control" if texts.version == 1 else "memory.events"
    return find_counter(texts.files.get(file, b""), b"oom_kill") or 0


def _v1(files: Mapping[str, bytes]) -> Details:
    stat = files.get("memory.stat", b"")
    cpu = files.get("cpu.stat", b"")
    quota = _number(files, "cpu.cfs_quota_us")
    limited = quota is not None and quota > 0
    ticks = files.get("cpuacct.stat", b"")
    user, system = find_counter(ticks, b"user"), find_counter(ticks, b"system")
    return Details(
        user_ns=None if user is None else user * _TICK_NS,
        system_ns=None if system is None else system * _TICK_NS,
        shares=_number(files, "cpu.shares"),
        quota=quota if limited else None,
        period=_number(files, "cpu.cfs_period_us"),
        periods=find_counter(cpu, b"nr_periods") if limited else None,
        throttled_periods=find_counter(cpu, b"nr_throttled") if limited else None,
        throttled_ns=find_counter(cpu, b"throttled_time") if limited else None,
        memory_limit=_limit(files, "memory.limit_in_bytes"),
        swap_limit=_limit(files, "memory.memsw.limit_in_bytes"),
        reservation=_limit(files, "memory.soft_limit_in_bytes"),
        cache=find_counter(stat, b"total_cache"),
        mapped_file=find_counter(stat, b"total_mapped_file"),
        active_file=find_counter(stat, b"total_active_file"),
        inactive_file=find_counter(stat, b"total_inactive_file"),
        kernel=_number(files, "memory.kmem.usage_in_bytes"),
        max_usage=_number(files, "memory.max_usage_in_bytes"),
        failcnt=_number(files, "memory.failcnt"),
        hierarchy_faults=find_counter(stat, b"total_pgfault"),
        hierarchy_major_faults=find_counter(stat, b"total_pgmajfault"),
        oom_kills=find_counter(files.get("memory.oom_control", b""), b"oom_kill"),
        threads=_number(files, "pids.current"),
        threads_max=_limit(files, "pids.max"),
        devices=_devices_v1(
            files.get("blkio.throttle.io_service_bytes_recursive", b""),
            files.get("blkio.throttle.io_serviced_recursive", b""),
        ),
    )


def _v2(files: Mapping[str, bytes]) -> Details:
    stat = files.get("memory.stat", b"")
    cpu = files.get("cpu.stat", b"")
    quota, period = _cpu_max(files.get("cpu.max", b""))
    user, system = find_counter(cpu, b"user_usec"), find_counter(cpu, b"system_usec")
    throttled = find_counter(cpu, b"throttled_usec")
    weight = _number(files, "cpu.weight")
    events = files.get("memory.events", b"")
    return Details(
        user_ns=None if user is None else user * 1000,
        system_ns=None if system is None else system * 1000,
        # the reverse of what container runtimes make of shares
        shares=None if weight is None else 2 + (weight - 1) * 262_142 // 9_999,
        quota=quota,
        period=period,
        periods=find_counter(cpu, b"nr_periods") if quota is not None else None,
        throttled_periods=find_counter(cpu, b"nr_throttled") if quota is not None else None,
        throttled_ns=throttled * 1000 if quota is not None and throttled is not None else None,
        memory_limit=_limit(files, "memory.max"),
        swap_limit=_limit(files, "memory.swap.max"),
        reservation=_limit(files, "memory.low"),
        cache=find_counter(stat, b"file"),
        mapped_file=find_counter(stat, b"file_mapped"),
        active_file=find_counter(stat, b"active_file"),
        inactive_file=find_counter(stat, b"inactive_file"),
        kernel=find_counter(stat, b"kernel"),
        max_usage=_number(files, "memory.peak"),
        failcnt=find_counter(events, b"max"),
        hierarchy_faults=find_counter(stat, b"pgfault"),
        hierarchy_major_faults=find_counter(stat, b"pgmajfault"),
        oom_kills=find_counter(events, b"oom_kill"),
        threads=_number(files, "pids.current"),
        threads_max=_limit(files, "pids.max"),
        devices=_devices_v2(files.get("io.stat", b"")),
    )


def _number(files: Mapping[str, bytes], name: str) -> int | None:
    text = files.get(name)
    return None if text is None else parse_number(text)


def _limit(files: Mapping[str, bytes], name: str) -> int:
    """0 = none: "max", more than 2^62, or no such file."""
    limit = _number(files, name)
    return 0 if limit is None or limit > UNLIMITED else limit


def _cpu_max(text: bytes) -> tuple[int | None, int | None]:
    """cpu.max: "max 100000" or "20000 100000". The root has none."""
    quota, _, period = text.strip().partition(b" ")
    if not quota:
        return None, _NO_QUOTA_PERIOD
    return parse_number(quota), parse_number(period)


def _devices_v1(service_bytes: bytes, serviced: bytes) -> tuple[DeviceCounters, ...]:
    """Lines `8:0 Read 123`, and a last one `Total 123` without a device."""
    found: dict[str, dict[str, int]] = {}
    for text, names in ((service_bytes, ("read_bytes", "write_bytes")), (serviced, ("reads", "writes"))):
        for line in text.decode("ascii", "replace").splitlines():
            parts = line.split()
            if len(parts) == 3 and parts[1] in ("Read", "Write") and parts[2].isdigit():
                found.setdefault(parts[0], {})[names[parts[1] == "Write"]] = int(parts[2])
    return tuple(DeviceCounters(device=device, **values) for device, values in found.items())


_IO_KEYS = {"rbytes": "read_bytes", "wbytes": "write_bytes", "rios": "reads", "wios": "writes"}


def _devices_v2(text: bytes) -> tuple[DeviceCounters, ...]:
    """Lines `8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0`; a device without activity has none."""
    found: list[DeviceCounters] = []
    for line in text.decode("ascii", "replace").splitlines():
        device, *pairs = line.split()
        values = dict(pair.partition("=")[::2] for pair in pairs)
        told = {name: int(values[key]) for key, name in _IO_KEYS.items() if values.get(key, "").isdigit()}
        if told:
            found.append(DeviceCounters(device=device, **told))
    return tuple(found)
