"""What is told of pods beside the kernel's own counters: busy, idle, killed for memory, restarting, on the network."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.contract.runtime.sockets import Proxy
from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

MIB = 1 << 20
PODS = {
    "idle": ("sleep 3600", "{}"),
    "busy": ("while :; do :; done", "{limits: {cpu: 500m}}"),
    "hungry": ("sleep 1; tail /dev/zero", "{limits: {memory: 16Mi}}"),
    "restarting": ("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 12; exit 1", "{}"),
    "serving": ("head -c 10485760 /dev/urandom > /tmp/file; exec httpd -f -p 8080 -h /tmp", "{}"),
    "loading": ("sleep 3600", "{}"),
    "reading": ("sleep 3600", "{}"),
}


def manifest(name: str) -> str:
    command, resources = PODS[name]
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n"
        f"  volumes: [{{name: v, emptyDir: {{}}}}]\n  containers:\n"
        f"  - name: main\n    image: busybox:1.36\n    command: [sh, -c, {json.dumps(command)}]\n"
        f"    resources: {resources}\n    volumeMounts: [{{name: v, mountPath: /v}}]\n"
    )


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            assert made.json("/stats/summary")["pods"] == [], "case 50: no pods are an empty list"
            for name in PODS:
                made.apply(f"{name}.yaml", manifest(name))
            steady = set(PODS) - {"hungry", "restarting"}
            eventually(lambda: steady <= made.ready_pods(), within=90)
            yield made
        finally:
            made.close()


def told(node: Node, name: str) -> Any:
    """The pod's part of the Summary."""
    pods = {one["podRef"]["name"]: one for one in node.json("/stats/summary")["pods"]}
    return pods[f"{name}-n1"]


def container(node: Node, name: str) -> Any:
    (one,) = told(node, name)["containers"]
    return one


def running(node: Node, name: str) -> str:
    """The id of the running container."""
    return node.docker("ps", "-q", "--no-trunc", "--filter", f"name=k8s_main_{name}-n1_default_").strip()


def pid_of(node: Node, name: str, *, kind: str = "main") -> int:
    found = node.docker("ps", "-q", "--filter", f"name=k8s_{kind}_{name}-n1_default_").strip()
    return int(node.docker("inspect", "-f", "{{.State.Pid}}", found).strip())


class Cgroup:
    """A container's counters as the kernel has them now."""

    def __init__(self, pid: int) -> None:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        self._paths = {kind: path for line in lines for kind, path in [line.split(":", 2)[1:]]}
        self._is_v2 = "cpuacct" not in ",".join(self._paths)

    def _file(self, controller: str, name: str) -> str:
        if self._is_v2:
            return (Path("/sys/fs/cgroup") / self._paths[""].lstrip("/") / name).read_text()
        for kind, path in self._paths.items():
            if controller in kind.split(","):
                return (Path("/sys/fs/cgroup") / controller / path.lstrip("/") / name).read_text()
        raise AssertionError(f"no {controller} in {self._paths}")

    def cpu_ns(self) -> int:
        if self._is_v2:
            return int(self._file("", "cpu.stat").split()[1]) * 1000
        return int(self._file("cpuacct", "cpuacct.usage"))

    def memory(self) -> int:
        return int(self._file("memory", "memory.current" if self._is_v2 else "memory.usage_in_bytes"))

    def inactive_file(self) -> int:
        rows = dict(line.split() for line in self._file("memory", "memory.stat").splitlines())
        return int(rows["inactive_file" if self._is_v2 else "total_inactive_file"])

    def count_disk(self, file: Path) -> None:
        """Newer kernels count for a v1 group only where it has a limit: one that nothing reaches."""
        if self._is_v2:
            return
        number = file.stat().st_dev
        device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        whole = device.resolve().parent if (device / "partition").exists() else device.resolve()
        path = next(path for kind, path in self._paths.items() if kind == "blkio")
        limit = Path("/sys/fs/cgroup/blkio") / path.lstrip("/") / "blkio.throttle.read_bps_device"
        limit.write_text(f"{(whole / 'dev').read_text().strip()} {1 << 40}")

    def disk(self) -> dict[str, int]:
        """Read and Write, bytes over all devices."""
        found = {"Read": 0, "Write": 0}
        if self._is_v2:
            for line in self._file("", "io.stat").splitlines():
                parts = dict(part.split("=") for part in line.split()[1:])
                found["Read"] += int(parts.get("rbytes", 0))
                found["Write"] += int(parts.get("wbytes", 0))
            return found
        for line in self._file("blkio", "blkio.throttle.io_service_bytes").splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in found:
                found[words[1]] += int(words[2])
        return found


def at_a_sample(node: Node, name: str, truth: Callable[[], float], part: Callable[[Any], tuple[str, float]]) -> None:
    """A sample that is fresh lies between the truths right before and after it, within 3 %. `part`: a container's part
    of the Summary -> (its time, its value)."""
    known, _ = part(container(node, name))
    before: list[float] = []

    def fresh() -> float | None:
        before.append(truth())
        at, value = part(container(node, name))
        return value if at != known else None

    value = eventually(fresh, within=45, every=0.1)
    earlier = before[-2] if len(before) > 1 else before[0]
    assert value is not None
    assert earlier * 0.97 <= value <= truth() * 1.03


@pytest.mark.parametrize("name", ["idle", "busy"])
def test_cpu_time_is_the_cgroups(node: Node, name: str) -> None:
    cgroup = Cgroup(pid_of(node, name))
    at_a_sample(node, name, cgroup.cpu_ns, lambda one: (one["cpu"]["time"], one["cpu"]["usageCoreNanoSeconds"]))


@pytest.mark.parametrize("name", ["idle", "busy"])
def test_memory_is_the_cgroups(node: Node, name: str) -> None:
    """Within 1 %; a page or two may come or go between the two looks."""
    cgroup = Cgroup(pid_of(node, name))

    def same() -> bool:
        memory = container(node, name)["memory"]
        assert memory["usageBytes"] == pytest.approx(cgroup.memory(), rel=0.01, abs=16 << 10)
        return True

    eventually(same, within=45)


def test_a_loop_with_half_a_core_uses_half_a_core(node: Node) -> None:
    """Case 5."""

    def half() -> bool:
        used = container(node, "busy")["cpu"]["usageNanoCores"]
        assert 4.5e8 <= used <= 5.5e8, used
        return True

    eventually(half, within=90, every=1)


def test_a_container_that_is_killed_for_memory_is_told_as_the_one_that_runs_now(node: Node) -> None:
    """Counters are those of the running one, or there are none; and the kill is counted."""

    def counted() -> bool:
        _, page = node.get("/metrics/cadvisor")
        rows = [line for line in page.decode().splitlines() if line.startswith("container_oom_events_total{")]
        return any('pod="hungry-n1"' in line and not line.split()[-2].startswith("0") for line in rows)

    eventually(counted, within=90, every=0.5)

    def is_running_one() -> bool:
        """An instance that has ended has no entry; one that runs has no more than its limit."""
        one = container(node, "hungry")
        assert one["memory"]["usageBytes"] <= 16 * MIB
        return Cgroup(pid_of(node, "hungry")).cpu_ns() >= int(one["cpu"]["usageCoreNanoSeconds"]) > 0

    eventually(is_running_one, within=150)


def test_a_restarted_containers_counters_begin_anew(node: Node) -> None:
    """The cpu time told is the running instance's, never the sum over instances or one that has ended."""

    def of_the_second() -> bool:
        pod = node.pod("restarting")
        (status,) = pod["status"]["containerStatuses"]
        assert status["restartCount"] >= 1 and "running" in status["state"]
        cgroup = Cgroup(pid_of(node, "restarting"))
        one = container(node, "restarting")
        assert one["startTime"] == status["state"]["running"]["startedAt"]
        assert 0 < one["cpu"]["usageCoreNanoSeconds"] <= cgroup.cpu_ns()
        return bool(running(node, "restarting") == status["containerID"].removeprefix("docker://"))

    eventually(of_the_second, within=120, every=0.5)


def test_network_bytes_are_the_kernels(node: Node) -> None:
    """Case 16: ten megabytes more after a download, and when it's quiet exactly what /proc/<pid>/net/dev says."""
    pid = pid_of(node, "loading", kind="POD")

    def truth() -> tuple[int, int]:
        for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name.strip() == "eth0":
                columns = rest.split()
                return int(columns[0]), int(columns[8])
        raise AssertionError("no eth0")

    before = truth()
    address = node.pod("serving")["status"]["podIP"]
    command = f"wget -q -O /dev/null http://{address}:8080/file"
    node.docker("exec", running(node, "loading"), "sh", "-c", command)
    assert truth()[0] - before[0] >= 10_000_000

    def same() -> bool:
        network = told(node, "loading")["network"]
        (eth0,) = [one for one in network["interfaces"] if one["name"] == "eth0"]
        assert (eth0["rxBytes"], eth0["txBytes"]) == truth()
        assert {key: network[key] for key in eth0} == eth0
        return True

    eventually(same, within=60, every=0.2)


def cold_file(node: Node, name: str, mib: int) -> Path:
    """/v/file of the pod, out of the page cache: pages belong to who reads them first."""
    uid = node.pod(name)["metadata"]["uid"]
    file: Path = node.data / "pods" / uid / "volumes" / "kubernetes.io~empty-dir" / "v" / "file"
    with file.open("wb") as out:
        for _ in range(mib):
            out.write(os.urandom(MIB))
        out.flush()
        os.fsync(out.fileno())
        os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return file


def test_disk_bytes_are_the_kernels(node: Node) -> None:
    """When it's quiet, exactly what the block layer counted for the container."""
    id_ = running(node, "loading")
    cgroup = Cgroup(pid_of(node, "loading"))
    cgroup.count_disk(cold_file(node, "loading", 20))
    node.docker("exec", id_, "sh", "-c", "cat /v/file > /dev/null")
    assert cgroup.disk()["Read"] >= 20 * MIB

    def same() -> bool:
        (info,) = node.json(f"/podbus/cadvisor/api/v1.3/docker/{id_}").values()
        rows = info["stats"][-1]["diskio"]["io_service_bytes"]
        sums = {kind: sum(row["stats"].get(kind, 0) for row in rows) for kind in ("Read", "Write")}
        assert sums == cgroup.disk()
        return True

    eventually(same, within=60, every=0.2)


def test_the_page_cache_is_usage_but_not_the_working_set(node: Node) -> None:
    """Case 8: a file of 200 MB, read twice."""
    cold_file(node, "reading", 200)
    cgroup = Cgroup(pid_of(node, "reading"))
    before = cgroup.memory()
    node.docker("exec", running(node, "reading"), "sh", "-c", "cat /v/file /v/file > /dev/null")

    def shown() -> bool:
        memory = container(node, "reading")["memory"]
        assert memory["usageBytes"] - before == pytest.approx(200 * MIB, rel=0.1)
        wanted = cgroup.memory() - cgroup.inactive_file()
        assert memory["workingSetBytes"] == pytest.approx(wanted, rel=0.05)
        return True

    eventually(shown, within=60, every=0.5)


def test_the_nodes_file_systems_are_the_kernels(node: Node) -> None:
    """Case 47; the images together never weigh more than their file system holds."""

    def same() -> bool:
        fs = node.json("/stats/summary")["node"]["fs"]
        now = os.statvfs(node.data)
        assert fs["capacityBytes"] == now.f_blocks * now.f_frsize
        assert fs["availableBytes"] == pytest.approx(now.f_bavail * now.f_frsize, abs=MIB)
        assert fs["usedBytes"] == pytest.approx((now.f_blocks - now.f_bfree) * now.f_frsize, abs=MIB)
        return True

    eventually(same, within=60, every=0.2)
    images = node.json("/stats/summary")["node"]["runtime"]["imageFs"]
    assert 0 < images["usedBytes"] <= images["capacityBytes"]
    sizes = [int(size) for size in node.docker("image", "inspect", "-f", "{{.Size}}", *image_ids(node)).split()]
    assert max(sizes) <= images["usedBytes"] <= sum(sizes)


def image_ids(node: Node) -> list[str]:
    return sorted(set(node.docker("images", "-q", "--no-trunc").split()))


def test_counters_never_fall_within_an_instance(node: Node) -> None:
    """Case 7."""
    seen: list[int] = []

    def collected() -> bool:
        seen.append(container(node, "busy")["cpu"]["usageCoreNanoSeconds"])
        return len(set(seen)) >= 3

    eventually(collected, within=90, every=0.5)
    assert seen == sorted(seen)


def test_a_slow_engine_slows_no_answer() -> None:
    """Case 42: three seconds per call to the engine, and fresh samples all the same: stats never asks it."""
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        proxy = Proxy(Path(directory) / "engine.sock")
        proxy.open()
        node = Node(Path(directory) / "0", docker_host=proxy.url)
        try:
            node.start()
            node.apply("idle.yaml", manifest("idle"))
            before = eventually(lambda: container(node, "idle")["cpu"]["time"], within=60)
            proxy.delay = 3.0

            def is_fresh() -> bool:
                context = ssl.create_default_context(cafile=str(node.data / "pki" / "ca.crt"))
                link = http.client.HTTPSConnection("127.0.0.1", node.port, timeout=3, context=context)
                link.request("GET", "/stats/summary", headers={"Authorization": f"Bearer {node.token}"})
                (pod,) = json.loads(link.getresponse().read())["pods"]
                link.close()
                return bool(pod["containers"][0]["cpu"]["time"] > before)

            eventually(is_fresh, within=60)
        finally:
            proxy.delay = 0.0
            node.close()
