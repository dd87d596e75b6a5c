"""What is measured (targets) and what was read (samples).

Counters are cumulative and in the unit that the name tells. None means "not measured" and ends as an absent
key, never as a zero. Instants are float seconds since the epoch; `monotonic_ns` belongs to the clock that
never steps, and only that one is used for intervals.
"""

from __future__ import annotations

import msgspec


class _Fact(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    pass


class _Whole(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that holds tuples of others."""


# --- what to measure


class CgroupPath(_Fact, frozen=True, kw_only=True):
    """A cgroup's absolute path per controller, below the mount point. On v2 both are the same."""

    cpu: str
    memory: str

    @classmethod
    def same(cls, path: str) -> CgroupPath:
        """The path that every controller shares, as Docker makes them."""
        return cls(cpu=path, memory=path)


class ContainerTarget(_Fact, frozen=True, kw_only=True):
    """One running instance of an app or init container; never the sandbox."""

    id: str
    """64 hex digits, without a scheme."""
    name: str
    pid: int
    """In the host's pid namespace; 0 when unknown."""
    started_at: float
    image: str = ""
    """As the engine was told it: an id, or a name by digest."""
    attempt: int = 0


class VolumeTarget(_Fact, frozen=True, kw_only=True):
    """A volume of a pod that is measured by walking its directory."""

    name: str
    path: str
    is_local: bool = True
    """Counts as ephemeral storage: a directory on the node's disk and not in memory."""


class PodTarget(_Whole, frozen=True, kw_only=True):
    uid: str
    name: str
    namespace: str
    start_time: float | None = None
    """status.startTime. kubelet 1.36: a pod without one isn't in the summary yet."""
    cgroup: str = ""
    """The pod's cgroup below the mount point; "" when it has none."""
    sandbox_id: str = ""
    sandbox_pid: int = 0
    """0 when the sandbox doesn't run."""
    host_network: bool = False
    """Its interfaces are the node's and are not told as its own."""
    sandbox_started_at: float = 0.0
    sandbox_attempt: int = 0
    containers: tuple[ContainerTarget, ...] = ()
    oom_kills: tuple[tuple[str, str, int], ...] = ()
    """(container's name, id, kills for want of memory in it) of live and ended instances, by the kernel's log and
    the status."""


class SystemTarget(_Fact, frozen=True, kw_only=True):
    """A cgroup told under node.systemContainers, if it exists."""

    name: str
    """kubelet, runtime, misc or pods."""
    cgroup: str
    memory_limit: int | None = None
    """Bytes that it may use where the cgroup itself has no limit: the node's allocatable memory, for pods.
    Without it MemTotal counts, because the eviction manager needs `pods` to have availableBytes."""


class ImageTarget(_Fact, frozen=True, kw_only=True):
    """Where the engine keeps its images, and what they weigh together."""

    root_dir: str
    used_bytes: int | None = None


class Targets(_Whole, frozen=True, kw_only=True):
    """Everything to measure beside the node itself."""

    pods: tuple[PodTarget, ...] = ()
    system: tuple[SystemTarget, ...] = ()
    images: ImageTarget | None = None
    engine_trouble: str = ""
    """Why the engine doesn't answer; "" = it does."""
    engine_version: str = ""


# --- what was read


class MemoryUsage(_Fact, frozen=True, kw_only=True):
    """Bytes, and two counters of faults."""

    usage: int
    """All of it, page cache included."""
    working_set: int
    """usage - inactive file pages, at least 0."""
    rss: int | None = None
    page_faults: int | None = None
    major_page_faults: int | None = None
    limit: int | None = None
    """None = unlimited."""
    swap: int | None = None
    """None = the kernel doesn't account it."""

    @property
    def available(self) -> int | None:
        """limit - working set, at least 0; None when unlimited."""
        return None if self.limit is None else max(0, self.limit - self.working_set)


class Pressure(_Fact, frozen=True, kw_only=True):
    """One line of a pressure file: percent of the time, and microseconds since the start."""

    avg10: float
    avg60: float
    avg300: float
    total: int


class PressurePair(_Fact, frozen=True, kw_only=True):
    some: Pressure
    full: Pressure


class Pressures(_Fact, frozen=True, kw_only=True):
    """Of one cgroup; None where the kernel doesn't tell."""

    cpu: PressurePair | None = None
    memory: PressurePair | None = None
    io: PressurePair | None = None


class CgroupUsage(_Fact, frozen=True, kw_only=True):
    """One reading of a cgroup's files. A controller that isn't there leaves its part None."""

    cpu_ns: int | None = None
    memory: MemoryUsage | None = None
    pressure: Pressures | None = None
    swap_limit: int | None = None
    tasks: int | None = None
    """Processes and threads in it and below."""


class CgroupSample(_Fact, frozen=True, kw_only=True):
    """A reading and when it was taken."""

    at: float
    monotonic_ns: int
    usage: CgroupUsage


class Interface(_Fact, frozen=True, kw_only=True):
    name: str
    rx_bytes: int
    rx_errors: int
    tx_bytes: int
    tx_errors: int
    rx_packets: int = 0
    rx_dropped: int = 0
    tx_packets: int = 0
    tx_dropped: int = 0


class NetworkSample(_Whole, frozen=True, kw_only=True):
    at: float
    interfaces: tuple[Interface, ...]


class FilesystemUsage(_Fact, frozen=True, kw_only=True):
    """Bytes and counts of one filesystem. `used` = capacity - free, so used + available is less than
    capacity by the blocks kept for root."""

    capacity: int
    available: int
    used: int
    inodes: int
    inodes_free: int


class FilesystemSample(_Fact, frozen=True, kw_only=True):
    at: float
    usage: FilesystemUsage
    used_bytes: int | None
    """What to tell as usedBytes: for a filesystem its `used`, for images the sum of their sizes."""


class MemoryInfo(_Fact, frozen=True, kw_only=True):
    """/proc/meminfo in bytes."""

    total: int
    free: int
    anonymous: int | None = None
    inactive_file: int | None = None


class TaskLimits(_Fact, frozen=True, kw_only=True):
    """Tasks (threads) of the whole node."""

    maximum: int
    running: int


class TaskSample(_Fact, frozen=True, kw_only=True):
    at: float
    limits: TaskLimits


class DirectorySize(_Fact, frozen=True, kw_only=True):
    """What a walk over a directory found, and when."""

    at: float
    used_bytes: int
    inodes: int


class DiskShare(_Fact, frozen=True, kw_only=True):
    """A walked directory, and the filesystem that it is on."""

    size: DirectorySize
    filesystem: FilesystemUsage


class VolumeShare(_Fact, frozen=True, kw_only=True):
    target: VolumeTarget
    share: DiskShare


class Texts(_Whole, frozen=True, kw_only=True):
    """The latest content of the files that only pages for Prometheus tell; parsed when one is asked for."""

    version: int
    files: dict[str, bytes]
    processes: ProcessFacts | None = None


class ProcessFacts(_Fact, frozen=True, kw_only=True):
    """Of the processes directly in one cgroup."""

    count: int
    descriptors: int
    sockets: int
    max_open_files: int | None = None
    """The soft limit of the first; -1 = none."""


class ContainerHistory(_Whole, frozen=True, kw_only=True):
    target: ContainerTarget
    window: tuple[CgroupSample, ...]
    """Oldest first."""
    path: str = ""
    """Of its cgroup, as it was found."""
    texts: Texts | None = None
    rootfs: DiskShare | None = None
    logs: DiskShare | None = None
    oom_events: int = 0
    """Kills for memory in this instance and the ones before it."""


class PodHistory(_Whole, frozen=True, kw_only=True):
    target: PodTarget
    window: tuple[CgroupSample, ...] = ()
    network: NetworkSample | None = None
    sandbox_runs: bool = False
    containers: tuple[ContainerHistory, ...] = ()
    created_at: float | None = None
    texts: Texts | None = None
    sandbox_path: str = ""
    sandbox_window: tuple[CgroupSample, ...] = ()
    sandbox_texts: Texts | None = None
    sandbox_logs: DiskShare | None = None
    volumes: tuple[VolumeShare, ...] = ()


class SystemHistory(_Whole, frozen=True, kw_only=True):
    target: SystemTarget
    created_at: float | None
    window: tuple[CgroupSample, ...]


class NodeHistory(_Whole, frozen=True, kw_only=True):
    name: str
    boot_at: float | None
    memory_total: int | None = None
    window: tuple[CgroupSample, ...] = ()
    network: NetworkSample | None = None
    filesystem: FilesystemSample | None = None
    images: FilesystemSample | None = None
    tasks: TaskSample | None = None
    system: tuple[SystemHistory, ...] = ()
    created_at: float | None = None
    texts: Texts | None = None
    device: str = ""
    """Of `filesystem`: /dev/vda."""
