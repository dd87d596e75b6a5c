"""The texts of /proc files and the numbers of statvfs -> facts. Pure; what a file doesn't say is None."""

from __future__ import annotations

from services.stats.core.model import FilesystemUsage, Interface, MemoryInfo, TaskLimits

IGNORED_INTERFACES = ("lo", "veth", "docker", "nerdctl")
"""cAdvisor 0.60: interfaces whose names begin so are the node's own plumbing and aren't told."""


def parse_net_dev(text: str) -> tuple[Interface, ...]:
    """/proc/<pid>/net/dev -> its interfaces in the kernel's order, without the ignored ones.

    After the colon come 16 numbers: receive bytes, packets, errs, drop, ...; transmit the same from the
    ninth on. A wide byte count may touch the colon, so that is where the name ends and not at a blank.
    """
    found: list[Interface] = []
    for line in text.splitlines()[2:]:
        name, colon, rest = line.rpartition(":")
        name = name.strip()
        fields = rest.split()
        if not colon or len(fields) < 16 or name.startswith(IGNORED_INTERFACES):
            continue
        found.append(
            Interface(
                name=name,
                rx_bytes=int(fields[0]),
                rx_errors=int(fields[2]),
                tx_bytes=int(fields[8]),
                tx_errors=int(fields[10]),
                rx_packets=int(fields[1]),
                rx_dropped=int(fields[3]),
                tx_packets=int(fields[9]),
                tx_dropped=int(fields[11]),
            )
        )
    return tuple(found)


def parse_meminfo(text: str) -> MemoryInfo | None:
    """/proc/meminfo -> bytes; None without MemTotal or MemFree."""
    kibibytes: dict[str, int] = {}
    for line in text.splitlines():
        key, _, rest = line.partition(":")
        if key in ("MemTotal", "MemFree", "AnonPages", "Inactive(file)"):
            kibibytes[key] = int(rest.split()[0])
    if "MemTotal" not in kibibytes or "MemFree" not in kibibytes:
        return None

    def in_bytes(key: str) -> int | None:
        return kibibytes[key] * 1024 if key in kibibytes else None

    return MemoryInfo(
        total=kibibytes["MemTotal"] * 1024,
        free=kibibytes["MemFree"] * 1024,
        anonymous=in_bytes("AnonPages"),
        inactive_file=in_bytes("Inactive(file)"),
    )


def parse_boot_time(stat: str) -> float | None:
    """/proc/stat -> the instant of boot, seconds since the epoch."""
    for line in stat.splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return None


def parse_cpu_total(stat: str, ticks_per_second: int) -> int | None:
    """/proc/stat -> nanoseconds that all CPUs were busy: user, nice, system, irq, softirq and steal. Not
    idle and iowait; guest time is inside user already."""
    head = stat.split("\n", 1)[0].split()
    if len(head) < 8 or head[0] != "cpu":
        return None
    user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in head[1:8])
    steal = int(head[8]) if len(head) > 8 else 0
    return (user + nice + system + irq + softirq + steal) * 1_000_000_000 // ticks_per_second


def parse_task_limits(pid_max: str, threads_max: str, loadavg: str) -> TaskLimits | None:
    """kubelet 1.36: the smaller of kernel.pid_max and kernel.threads-max, and the number behind the "/" in
    /proc/loadavg (sysinfo(2) can't count beyond 65535)."""
    try:
        running = int(loadavg.split()[3].split("/")[1])
        return TaskLimits(maximum=min(int(pid_max), int(threads_max)), running=running)
    except (IndexError, ValueError):
        return None


def parse_statvfs(
    *, fragment_size: int, blocks: int, free: int, available: int, files: int, files_free: int
) -> FilesystemUsage:
    """The numbers of statvfs(3), blocks counted in fragments -> bytes and inodes."""
    return FilesystemUsage(
        capacity=blocks * fragment_size,
        available=available * fragment_size,
        used=(blocks - free) * fragment_size,
        inodes=files,
        inodes_free=files_free,
    )


def parse_open_files(limits: str) -> int | None:
    """/proc/<pid>/limits -> the soft limit of open files; -1 = unlimited."""
    for line in limits.splitlines():
        if line.startswith("Max open files"):
            soft = line.split()[3]
            return -1 if soft == "unlimited" else int(soft)
    return None


def parse_upper_directory(mountinfo: str) -> str | None:
    """/proc/<pid>/mountinfo -> `upperdir=` of the mount at "/"; None when that isn't an overlay. The last mount on "/"
    is the one that is seen."""
    found: str | None = None
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.split()[4:5] != ["/"]:
            continue
        options = rest.split()[-1].split(",")
        found = next((one.removeprefix("upperdir=") for one in options if one.startswith("upperdir=")), None)
    return found
