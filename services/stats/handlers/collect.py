"""The sampling pass: targets -> readings -> history -> Summary bytes. Synchronous; a pass over 300 cgroups
takes a few milliseconds.

Whoever owns the loop calls `tick` and sleeps for what it returns, and calls it again after `set_targets`:

    collector.set_targets(targets)
    delay = collector.tick()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from services.stats.core.cadvisor_page import cadvisor_page
from services.stats.core.cgroup_paths import container_candidates
from services.stats.core.machine import MachineFacts
from services.stats.core.model import (
    CgroupPath,
    CgroupSample,
    CgroupUsage,
    ContainerHistory,
    ContainerTarget,
    FilesystemSample,
    NetworkSample,
    NodeHistory,
    PodHistory,
    PodTarget,
    SystemHistory,
    SystemTarget,
    Targets,
    TaskSample,
    Texts,
)
from services.stats.core.rates import NANOSECONDS
from services.stats.core.resource_page import resource_page
from services.stats.core.summary import build_summary, encode, pretty
from services.stats.core.window import extend
from services.stats.handlers.disk import Disk
from services.stats.handlers.tracked import Tracked, TrackedPod
from services.stats.ports import Cgroups, Filesystems, Machine, Processes
from shared.runtime.clock import Clock

INTERVAL_SECONDS = 10.0
"""kubelet 1.36: the housekeeping interval of its containers."""
JITTER = 0.1
"""Of the interval, at most, that a pass comes later: no load of a regular rhythm hides between the samples."""
DETAILS_SECONDS = 300.0
"""How long after a scrape of /metrics/cadvisor what only that page tells is still read in each pass."""
HOST_PID = 1
"""Whose interfaces are the node's: also true in a container that shares the host's pid namespace."""


class Collector:
    """Two minutes of history of the node, its pods and their containers. Not thread-safe: one loop owns
    it."""

    def __init__(
        self,
        *,
        node_name: str,
        root_dir: str,
        cgroups: Cgroups,
        processes: Processes,
        filesystems: Filesystems,
        clock: Clock,
        interval: float = INTERVAL_SECONDS,
        disk: Disk | None = None,
        machine: Machine | None = None,
        sandbox_image: str = "",
        jitter: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`root_dir`: the data directory, whose filesystem is node.fs.
        `interval`: seconds between passes. `sandbox_image`: as the engine was told it.
        `jitter`: a random number below 1."""
        self._root_dir = root_dir
        self._cgroups = cgroups
        self._processes = processes
        self._filesystems = filesystems
        self._clock = clock
        self._interval = interval
        self._jitter = jitter
        self._targets = Targets()
        self._pods: dict[str, TrackedPod] = {}
        self._system: dict[SystemTarget, Tracked] = {}
        self._root = Tracked()
        self._node = NodeHistory(name=node_name, boot_at=processes.boot_time())
        self._due = clock.boot_seconds()
        self._encoded: dict[tuple[bool, bool], bytes] = {}
        self._pages: dict[str, bytes] = {}
        self._disk = disk
        self._machine = machine
        self._sandbox_image = sandbox_image
        self._details_until = 0.0

    def set_targets(self, targets: Targets) -> None:
        """Measure these from now on. What is new among them is read at once; what is not among them any more
        is forgotten with its history. Same targets cost a comparison."""
        known = self._targets
        if targets == known:
            return
        self._targets = targets
        if self._disk is not None:
            self._disk.set_targets(targets)
        self._forget_encoded()
        if targets.images != known.images:
            self._node = replace(self._node, images=self._sample_images())
        wanted = {pod.uid: pod for pod in targets.pods}
        for uid in self._pods.keys() - wanted.keys():
            self._pods.pop(uid).drop()
        # Rebuilt in the order of the targets, which is the summary's.
        self._pods = {uid: self._pods.get(uid) or TrackedPod(pod) for uid, pod in wanted.items()}
        for pod in self._pods.values():
            self._set_pod(pod, wanted[pod.target.uid])
        for system in self._system.keys() - set(targets.system):
            self._system.pop(system).drop()
        for system in targets.system:
            if system not in self._system:
                self._system[system] = Tracked()
                self._measure(self._system[system], CgroupPath.same(system.cgroup))

    def sample(self) -> None:
        """One pass over everything, now."""
        self._forget_encoded()
        self._sample_node()
        for system, tracked in self._system.items():
            self._measure(tracked, CgroupPath.same(system.cgroup))
        for pod in self._pods.values():
            self._sample_pod(pod)

    def tick(self) -> float:
        """Do what is due; seconds until something is due again.

        That is a pass each interval, and one second after a cgroup's first reading its second, so that a new
        container's CPU rate needn't wait for the next pass.
        """
        now = self._clock.boot_seconds()
        if now >= self._due:
            # From the schedule and not from now, so that passes keep their distance; one that is late isn't
            # made up.
            self._due = max(self._due + self._interval * (1 + JITTER * self._jitter()), now + self._interval / 2)
            self.sample()
        else:
            for tracked in self._fresh():
                if tracked.second_due() <= now:
                    self._forget_encoded()
                    if tracked is self._root:
                        self._sample_node()
                    else:
                        self._measure(tracked)
        due = min([self._due, *(tracked.second_due() for tracked in self._fresh())])
        return max(0.0, due - self._clock.boot_seconds())

    def summary(self, only_cpu_and_memory: bool = False, indent: bool = False) -> bytes:
        """The Summary as JSON, compact or indented by one space; the same bytes until something new was
        read."""
        key = (only_cpu_and_memory, indent)
        found = self._encoded.get(key)
        if found is None:
            if indent:
                found = pretty(self.summary(only_cpu_and_memory))
            else:
                found = encode(build_summary(self.node(), self.pods(), only_cpu_and_memory=only_cpu_and_memory))
            self._encoded[key] = found
        return found

    def node(self) -> NodeHistory:
        """What was read of the node, for the summary and whoever else renders it."""
        return replace(
            self._node,
            system=tuple(
                SystemHistory(target=target, created_at=tracked.created_at, window=tracked.window)
                for target, tracked in self._system.items()
            ),
        )

    def pods(self) -> list[PodHistory]:
        """What was read of the pods, in the order of the targets."""
        return [
            PodHistory(
                target=pod.target,
                window=pod.tracked.window,
                network=pod.network,
                sandbox_runs=pod.sandbox_runs,
                containers=tuple(self._container(pod, *one) for one in pod.containers.items()),
                created_at=pod.tracked.created_at,
                texts=pod.tracked.texts,
                sandbox_path=pod.sandbox.path,
                sandbox_window=pod.sandbox.window,
                sandbox_texts=pod.sandbox.texts,
                sandbox_logs=None if self._disk is None else self._disk.logs(pod.target.sandbox_id),
                volumes=() if self._disk is None else self._disk.volumes(pod.target.uid),
            )
            for pod in self._pods.values()
        ]

    def _container(self, pod: TrackedPod, target: ContainerTarget, tracked: Tracked) -> ContainerHistory:
        return ContainerHistory(
            target=target,
            window=tracked.window,
            path=tracked.path,
            texts=tracked.texts,
            rootfs=None if self._disk is None else self._disk.rootfs(target.id),
            logs=None if self._disk is None else self._disk.logs(target.id),
            oom_events=pod.oom_events(target, tracked),
        )

    def close(self) -> None:
        """Forget everything and give the file descriptors back."""
        self.set_targets(Targets())

    def resource_page(self) -> bytes:
        """/metrics/resource; the same bytes until something new was read."""
        found = self._pages.get("resource")
        if found is None:
            failed = bool(self._targets.engine_trouble)
            found = self._pages["resource"] = resource_page(self.node(), self.pods(), failed=failed)
        return found

    def cadvisor_page(self) -> bytes:
        """/metrics/cadvisor; the same bytes until something new was read. The first one in a while takes a pass of
        its own for what nobody had asked for."""
        self.want_details()
        found = self._pages.get("cadvisor")
        if found is None:
            found = self._pages["cadvisor"] = cadvisor_page(
                self.node(),
                self.pods(),
                self.machine(),
                sandbox_image=self._sandbox_image,
                engine_version=self._targets.engine_version,
                now=self._clock.now(),
            )
        return found

    def want_details(self) -> None:
        """Read from now on also what only a page for Prometheus tells; the first time in a while at once."""
        wanted = self._wants_details
        self._details_until = self._clock.boot_seconds() + DETAILS_SECONDS
        if not wanted:
            self.sample()

    def machine(self) -> MachineFacts:
        return MachineFacts() if self._machine is None else self._machine.facts()

    def _forget_encoded(self) -> None:
        self._encoded.clear()
        self._pages.clear()

    def _set_pod(self, pod: TrackedPod, target: PodTarget) -> None:
        """A pod's new target; its new containers, and a new pod itself, are read at once."""
        known = pod.target
        is_new = not pod.tracked.window
        pod.target = target
        if known.cgroup != target.cgroup:
            pod.tracked.drop()
            is_new = True
        # A container is the same only as the same instance: with another pid or start its counters began
        # anew.
        for gone in pod.containers.keys() - set(target.containers):
            pod.note_end(gone, pod.containers[gone])
            pod.containers.pop(gone).drop()
        pod.note_kills()
        fresh = [container for container in target.containers if container not in pod.containers]
        pod.containers = {container: pod.containers.get(container) or Tracked() for container in target.containers}
        if is_new:
            self._measure_pod(pod)
        if is_new or known.sandbox_pid != target.sandbox_pid or known.sandbox_id != target.sandbox_id:
            self._sample_sandbox(pod)
        for container in fresh:
            self._sample_container(pod, container)

    def _sample_node(self) -> None:
        info = self._processes.memory_info()
        at, monotonic_ns = self._instant()
        usage = self._cgroups.root_usage(info)
        if usage.cpu_ns is None:
            usage = replace(usage, cpu_ns=self._processes.cpu_total_ns())
        if usage.pressure is None:
            usage = replace(usage, pressure=self._processes.pressure())
        usage = self._with_swap(usage)
        sample = CgroupSample(at=at, monotonic_ns=monotonic_ns, usage=usage)
        self._root.window = extend(self._root.window, sample)
        interfaces = self._processes.interfaces(HOST_PID)
        limits = self._processes.task_limits()
        self._node = NodeHistory(
            name=self._node.name,
            boot_at=self._node.boot_at,
            memory_total=None if info is None else info.total,
            window=self._root.window,
            network=None if interfaces is None else NetworkSample(at=at, interfaces=interfaces),
            filesystem=self._sample_filesystem(at),
            images=self._sample_images(),
            tasks=None if limits is None else TaskSample(at=at, limits=limits),
            created_at=self._cgroups.root_created_at,
            texts=self._detailed(self._cgroups.root_texts()) if self._wants_details else None,
            device=self._device(),
        )

    def _with_swap(self, usage: CgroupUsage) -> CgroupUsage:
        """The node's swap is the machine's."""
        swap, memory = self._processes.swap(), usage.memory
        if swap is None or memory is None:
            return usage if memory is None else replace(usage, memory=replace(memory, swap=None))
        used, free = swap
        return replace(usage, memory=replace(memory, swap=used), swap_limit=used + free)

    def _device(self) -> str:
        return "" if self._machine is None else self._node.device or self._machine.device_of(self._root_dir)

    @property
    def _wants_details(self) -> bool:
        return self._details_until > self._clock.boot_seconds()

    def _detailed(self, texts: Texts | None) -> Texts | None:
        """With what /proc tells of the cgroup's processes."""
        if texts is None:
            return None
        pids = [int(pid) for pid in texts.files.get("cgroup.procs", b"").split() if pid.isdigit()]
        return replace(texts, processes=self._processes.facts(pids))

    def _sample_filesystem(self, at: float) -> FilesystemSample | None:
        usage = self._filesystems.usage(self._root_dir)
        return None if usage is None else FilesystemSample(at=at, usage=usage, used_bytes=usage.used)

    def _sample_images(self) -> FilesystemSample | None:
        images = self._targets.images
        usage = None if images is None else self._filesystems.usage(images.root_dir)
        if images is None or usage is None:
            return None
        at, _ = self._instant()
        return FilesystemSample(at=at, usage=usage, used_bytes=images.used_bytes)

    def _sample_pod(self, pod: TrackedPod) -> None:
        self._measure_pod(pod)
        self._sample_sandbox(pod)
        for container in pod.containers:
            self._sample_container(pod, container)

    def _sample_sandbox(self, pod: TrackedPod) -> None:
        """Whether it runs, and its network. By its cgroup's path, which names it: the pid alone may be
        another process' by now, and the node's traffic would be told as the pod's."""
        target = pod.target
        text = self._processes.cgroup_text(target.sandbox_pid) if target.sandbox_pid else None
        pod.sandbox_runs = text is not None and target.sandbox_id in text
        interfaces = None
        if pod.sandbox_runs and not target.host_network:
            at, _ = self._instant()
            interfaces = self._processes.interfaces(target.sandbox_pid)
        pod.network = None if interfaces is None else NetworkSample(at=at, interfaces=interfaces)
        if pod.sandbox_runs and self._wants_details:
            sandbox = ContainerTarget(id=target.sandbox_id, name="POD", pid=target.sandbox_pid, started_at=0.0)
            self._measure(pod.sandbox, *container_candidates(sandbox, target.cgroup, text))
        else:
            pod.sandbox.drop()

    def _sample_container(self, pod: TrackedPod, container: ContainerTarget) -> None:
        tracked = pod.containers[container]
        candidates: list[CgroupPath] = []
        if tracked.cgroup is None:
            text = self._processes.cgroup_text(container.pid) if container.pid else None
            candidates = container_candidates(container, pod.target.cgroup, text)
        self._measure(tracked, *candidates)

    def _measure_pod(self, pod: TrackedPod) -> None:
        if pod.target.cgroup:
            self._measure(pod.tracked, CgroupPath.same(pod.target.cgroup))

    def _measure(self, tracked: Tracked, *candidates: CgroupPath) -> None:
        """One reading. A cgroup that isn't there (yet) is looked for again in the next pass; one that is
        gone takes its history along, so that nobody sees its last numbers with a fresh time."""
        if tracked.cgroup is None:
            tracked.cgroup = self._cgroups.open(candidates)
            if tracked.cgroup is None:
                return
            tracked.created_at = tracked.cgroup.created_at
            tracked.path = tracked.cgroup.path
        at, monotonic_ns = self._instant()
        usage = tracked.cgroup.read()
        if usage is None:
            tracked.drop()
            return
        tracked.window = extend(tracked.window, CgroupSample(at=at, monotonic_ns=monotonic_ns, usage=usage))
        tracked.take(self._detailed(tracked.cgroup.texts()) if self._wants_details else None)

    def _fresh(self) -> Iterator[Tracked]:
        """Those that were read once only: no CPU rate can be told of them yet."""
        for tracked in (self._root, *self._system.values()):
            if len(tracked.window) == 1:
                yield tracked
        for pod in self._pods.values():
            for tracked in (pod.tracked, *pod.containers.values()):
                if len(tracked.window) == 1:
                    yield tracked

    def _instant(self) -> tuple[float, int]:
        return self._clock.now(), int(self._clock.boot_seconds() * NANOSECONDS)
