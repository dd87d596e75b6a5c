"""The texts of cgroup files -> numbers. Pure; what a file doesn't say is None.

Only the few keys that are told get looked for: memory.stat has some sixty lines, and with three hundred
cgroups splitting them all would cost more than reading them.
"""

from __future__ import annotations

from services.stats.core.model import MemoryInfo, MemoryUsage, Pressure, PressurePair

UNLIMITED = 1 << 62
"""A v1 limit above this means none (the kernel's "no limit" is 2^63 rounded down to a page)."""


def find_counter(text: bytes, key: bytes) -> int | None:
    """The value of the line `key value`, or None when no line has that key."""
    if text.startswith(key + b" "):
        start = len(key) + 1
    else:
        at = text.find(b"\n" + key + b" ")
        if at < 0:
            return None
        start = at + len(key) + 2
    end = text.find(b"\n", start)
    digits = text[start:] if end < 0 else text[start:end]
    try:
        return int(digits)
    except ValueError:
        return None


def parse_number(text: bytes) -> int | None:
    """A file that holds one number."""
    try:
        return int(text)
    except ValueError:
        return None


def parse_limit(text: bytes) -> int | None:
    """memory.limit_in_bytes or memory.max -> bytes; None = unlimited ("max", or 2^62 and more)."""
    limit = parse_number(text)
    return None if limit is None or limit > UNLIMITED else limit


def parse_cpu_v1(cpuacct_usage: bytes) -> int | None:
    """cpuacct.usage -> nanoseconds."""
    return parse_number(cpuacct_usage)


def parse_cpu_v2(cpu_stat: bytes) -> int | None:
    """cpu.stat -> nanoseconds; the kernel counts microseconds there."""
    usec = find_counter(cpu_stat, b"usage_usec")
    return None if usec is None else usec * 1000


def parse_memory_v1(usage_in_bytes: bytes, memory_stat: bytes, limit: int | None) -> MemoryUsage | None:
    """memory.usage_in_bytes and memory.stat; the cgroup's children count.

    cAdvisor 0.60: rss is total_rss, the inactive file pages are total_inactive_file (the key without
    "total_" would miss what nested cgroups hold), but the faults are the cgroup's own: 0 for one that has
    only children.
    """
    usage = parse_number(usage_in_bytes)
    if usage is None:
        return None
    return MemoryUsage(
        usage=usage,
        working_set=max(0, usage - (find_counter(memory_stat, b"total_inactive_file") or 0)),
        rss=find_counter(memory_stat, b"total_rss"),
        page_faults=find_counter(memory_stat, b"pgfault"),
        major_page_faults=find_counter(memory_stat, b"pgmajfault"),
        limit=limit,
        swap=find_counter(memory_stat, b"total_swap"),
    )


def parse_memory_v2(
    memory_current: bytes, memory_stat: bytes, limit: int | None, swap: int | None = None
) -> MemoryUsage | None:
    """memory.current and memory.stat, which is hierarchical on v2; memory.swap.current is swap alone there."""
    usage = parse_number(memory_current)
    return None if usage is None else _memory_v2(usage, memory_stat, limit, swap)


def parse_pressure(text: bytes) -> PressurePair | None:
    """A pressure file (cgroup v2, /proc/pressure); None when it's empty or of another form."""
    lines: dict[str, Pressure] = {}
    for line in text.decode("ascii", "replace").splitlines():
        kind, *pairs = line.split()
        values = dict(pair.partition("=")[::2] for pair in pairs)
        try:
            lines[kind] = Pressure(
                avg10=float(values["avg10"]),
                avg60=float(values["avg60"]),
                avg300=float(values["avg300"]),
                total=int(values["total"]),
            )
        except (KeyError, ValueError):
            return None
    if "some" not in lines:
        return None
    # kernels before 5.13 have no "full" line for the CPU
    return PressurePair(some=lines["some"], full=lines.get("full", _NO_PRESSURE))


_NO_PRESSURE = Pressure(avg10=0.0, avg60=0.0, avg300=0.0, total=0)


def node_memory(usage: MemoryUsage | None, memory_stat: bytes, info: MemoryInfo) -> MemoryUsage:
    """The node's memory: the root cgroup's where it accounts itself, with MemTotal as the limit.

    The root of v2 has memory.stat but no memory.current, and a kernel may have the controller switched off;
    then the usage is MemTotal - MemFree (cAdvisor 0.60), and what memory.stat lacks comes from
    /proc/meminfo.
    """
    if usage is not None:
        return MemoryUsage(
            usage=usage.usage,
            working_set=usage.working_set,
            rss=usage.rss,
            page_faults=usage.page_faults,
            major_page_faults=usage.major_page_faults,
            limit=info.total,
            swap=usage.swap,
        )
    used = info.total - info.free
    told = _memory_v2(used, memory_stat, info.total)
    if find_counter(memory_stat, b"inactive_file") is not None:
        return told
    return MemoryUsage(
        usage=used,
        working_set=max(0, used - (info.inactive_file or 0)),
        rss=info.anonymous,
        page_faults=told.page_faults,
        major_page_faults=told.major_page_faults,
        limit=info.total,
    )


def _memory_v2(usage: int, memory_stat: bytes, limit: int | None, swap: int | None = None) -> MemoryUsage:
    return MemoryUsage(
        usage=usage,
        working_set=max(0, usage - (find_counter(memory_stat, b"inactive_file") or 0)),
        rss=find_counter(memory_stat, b"anon"),
        page_faults=find_counter(memory_stat, b"pgfault"),
        major_page_faults=find_counter(memory_stat, b"pgmajfault"),
        limit=limit,
        swap=swap,
    )
