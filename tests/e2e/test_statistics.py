"""What a real kubelet 1.20.2 measured of a pod, and what this node measures of the same one; and the kernel's truth."""

from __future__ import annotations

import gzip
import http.client
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.exposition import Exposition, Sample, parse_exposition
from tests.support.node import Node

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

GOLDEN = Path(__file__).parents[1] / "golden/wire"
LABELS = {"container", "id", "image", "name", "namespace", "pod"}

NOT_TOLD = {
    "container_tasks_state": "0 everywhere unless a netlink reader is on; absent instead of a wrong 0",
    "container_cpu_load_average_10s": "the same",
}
NEWER = {
    "container_memory_kernel_usage": "cAdvisor 0.45: kernel memory apart from the rest",
    "container_memory_total_active_file_bytes": "cAdvisor 0.47: the page cache that counts into the working set",
    "container_memory_total_inactive_file_bytes": "the same: what the working set leaves out",
    "container_oom_events_total": "cAdvisor 0.44: kills for memory, which alerts are made of",
    "machine_swap_bytes": "cAdvisor 0.38",
    **{
        f"container_pressure_{what}_{how}_seconds_total": "cAdvisor 0.50: pressure, where the kernel has it"
        for what in ("cpu", "memory", "io")
        for how in ("waiting", "stalled")
    },
}
"""What later cAdvisors tell, and why we do."""
UNCOUNTED = {
    "container_fs_reads_bytes_total": "the recorded kernel counted none: it does once a group has a limit",
    "container_fs_writes_bytes_total": "the same",
}
"""Families of cAdvisor that the recorded node had no sample for; here it depends on the kernel and on other groups."""
NODE_ONLY = "container_fs_"
"""What /proc/diskstats counts of the whole device: cAdvisor tells 0 of each container, we tell the node's only. The
recorded node's other file systems (tmpfs) aren't told either, nor the inodes of the sandbox's layer."""
OTHER_ROWS = {
    ("container_threads", "node"): "recorded as 0: the root cgroup has no pids.current",
    ("container_threads_max", "node"): "the same",
    ("container_memory_swap", "node"): "a machine without swap has none to tell",
    ("container_cpu_cfs_periods_total", "pod"): "whether a pod has a quota is decided with its limits, not here",
    ("container_cpu_cfs_throttled_periods_total", "pod"): "the same",
    ("container_cpu_cfs_throttled_seconds_total", "pod"): "the same",
    ("container_spec_cpu_quota", "pod"): "the same",
}


def _pod() -> str:
    """The recorded one, without what the kubelet filled in."""
    (recorded,) = json.loads((GOLDEN / "pods.json").read_bytes())["items"]
    spec: dict[str, Any] = {key: recorded["spec"][key] for key in ("volumes", "initContainers", "containers")}
    spec["terminationGracePeriodSeconds"] = 2
    for container in spec["initContainers"] + spec["containers"]:
        for key in ("terminationMessagePath", "terminationMessagePolicy", "readinessProbe"):
            container.pop(key, None)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
    return str(yaml.safe_dump(pod))


_KILLED = """
apiVersion: v1
kind: Pod
metadata: {name: killed}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: hungry
    image: busybox:1.36
    command: [sh, -c, "sleep 2; tail /dev/zero"]
    resources: {limits: {memory: 8Mi}}
"""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory) / "0")
        made.apply("web", _pod())
        made.apply("killed", _KILLED)
        made.start()
        try:
            eventually(lambda: "web" in made.ready_pods(), within=60)
            yield made
        finally:
            made.close()


def page(node: Node, path: str) -> Exposition:
    """By our strict reader, by Prometheus' own, and by OpenMetrics'."""
    status, body = node.get(path)
    assert status == 200
    assert list(text_string_to_metric_families(body.decode()))
    found = parse_exposition(body.decode())
    read = openmetrics.text_string_to_metric_families
    assert list(read(as_openmetrics(body.decode(), found)))  # type: ignore[no-untyped-call]
    return found


def as_openmetrics(text: str, parsed: Exposition) -> str:
    """The same page as Prometheus' own library spells OpenMetrics: a counter's family has no `_total`, one without that
    ending is of unknown type, times are seconds, and the end is told. Neither the kubelet nor podbus offers that form;
    the content has to be fit for it."""
    lines = []
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            is_counter = parsed.types.get(name) == "counter"
            if is_counter and word == "TYPE" and not name.endswith("_total"):
                rest = "unknown"
            lines.append(f"# {word} {name.removesuffix('_total') if is_counter else name} {rest}")
            continue
        head, _, last = line.rpartition(" ")
        is_timed = " " in head[head.rfind("}") + 1 :].strip()
        lines.append(f"{head} {int(last) / 1000}" if is_timed else line)
    return "\n".join([*lines, "# EOF", ""])


def row(sample: Sample, pod: str) -> tuple[Any, ...] | None:
    """A sample without what differs between nodes: which metric of which container, and its own labels."""
    labels = sample.labels
    if labels.get("pod") not in ("", pod, None):
        return None
    own = {key: value for key, value in labels.items() if key in ("cpu", "failure_type", "scope", "ulimit", "mode")}
    kind = "node" if labels.get("id") == "/" else "pod" if labels.get("pod") else ""
    return sample.name, kind, labels.get("container"), tuple(sorted(own.items())), sample.at is None


def test_the_pages_hold_what_the_kubelets_hold(node: Node) -> None:
    golden = parse_exposition((GOLDEN / "metrics-cadvisor.txt").read_text())
    told = page(node, "/metrics/cadvisor")
    assert golden.types.keys() - told.types.keys() == NOT_TOLD.keys()
    assert told.types.keys() - golden.types.keys() <= NEWER.keys() | UNCOUNTED.keys()
    for name in golden.types.keys() & told.types.keys():
        assert (told.types[name], told.helps[name]) == (golden.types[name], golden.helps[name])
    ours = {row(one, "web-n1") for one in told.samples}
    theirs = {row(one, "web-peer") for one in golden.samples if one.name not in NOT_TOLD}
    told_rows = {one for one in theirs if one is not None and not one[0].startswith(NODE_ONLY)}
    missing = {one for one in told_rows - ours if one[:2] not in OTHER_ROWS}
    assert missing == set()
    resources = page(node, "/metrics/resource")
    for sample in parse_exposition((GOLDEN / "metrics-resource.txt").read_text()).samples:
        assert any(one.labels.keys() == sample.labels.keys() for one in resources.of(sample.name)), sample.name


def test_the_summary_has_every_key_of_the_kubelets(node: Node) -> None:
    """Cases 1 and 4; disks are there as soon as they were walked."""
    golden = json.loads((GOLDEN / "stats-summary.json").read_bytes())

    def web() -> Any:
        pods = node.json("/stats/summary")["pods"]
        return next(one for one in pods if one["podRef"]["name"] == "web-n1")

    wanted = golden["pods"][0]
    eventually(lambda: wanted.keys() <= web().keys() and all("logs" in one for one in web()["containers"]), within=60)
    told = web()
    assert {one["name"] for one in told["volume"]} == {"www"}
    for ours, theirs in zip(told["containers"], wanted["containers"], strict=True):
        for part in theirs.keys() & {"cpu", "memory", "rootfs", "logs"}:
            assert theirs[part].keys() - ours[part].keys() <= {"usageNanoCores"}
    assert golden["node"].keys() <= node.json("/stats/summary")["node"].keys()
    small = node.json("/stats/summary?only_cpu_and_memory=true")
    assert not {"network", "fs", "runtime", "rlimit"} & small["node"].keys()
    assert not {"network", "volume", "ephemeral-storage"} & small["pods"][0].keys()


def test_cpu_and_memory_are_the_cgroups(node: Node) -> None:
    """Within 3 % and 1 % of what the kernel says at the instant of the sample."""
    container = node.docker("ps", "-q", "--no-trunc", "--filter", "name=k8s_busy_web-n1_default_").strip()
    pid = node.docker("inspect", "-f", "{{.State.Pid}}", container).strip()
    paths = dict(line.split(":", 2)[1:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())

    def truth() -> tuple[float, float]:
        if "cpuacct" not in paths:
            root = Path("/sys/fs/cgroup") / paths[""].lstrip("/")
            return int((root / "cpu.stat").read_text().split()[1]) / 1e6, int((root / "memory.current").read_text())
        cpu = Path(f"/sys/fs/cgroup/cpuacct{paths['cpuacct']}/cpuacct.usage").read_text()
        return int(cpu) / 1e9, int(Path(f"/sys/fs/cgroup/memory{paths['memory']}/memory.usage_in_bytes").read_text())

    seen: list[tuple[float, float]] = []  # when, CPU seconds

    def sampled() -> Sample:
        return page(node, "/metrics/resource").of("container_cpu_usage_seconds_total", container="busy")[0]

    before = sampled()

    def fresh() -> Sample | None:
        seen.append((time.time(), truth()[0]))
        found = sampled()
        return found if found.at != before.at else None

    sample = eventually(fresh, within=30)
    assert sample is not None and sample.at is not None
    at = sample.at / 1000
    earlier = max((one for one in seen if one[0] <= at), default=seen[0])
    later = truth()
    assert earlier[1] * 0.97 <= sample.value <= later[0] * 1.03
    memory = page(node, "/metrics/cadvisor").of("container_memory_usage_bytes", container="busy")[0]
    assert memory.value == pytest.approx(truth()[1], rel=0.01, abs=64 << 10)


def test_a_kill_for_memory_is_counted_and_the_dead_are_not_told(node: Node) -> None:
    """Cases 15 and 31: while it waits for its restart the container has no row; its kills stay counted."""

    def killed() -> bool:
        status = node.pods()["killed"]["status"].get("containerStatuses", [{}])[0]
        return bool(status.get("restartCount"))

    eventually(killed, within=60)

    def counted() -> bool:
        found = page(node, "/metrics/cadvisor").of("container_oom_events_total", container="hungry")
        return bool(found) and found[0].value >= 1

    eventually(counted, within=60)
    for sample in page(node, "/metrics/resource").of("container_cpu_usage_seconds_total"):
        assert sample.value > 0


def test_a_page_comes_packed_to_who_takes_it(node: Node) -> None:
    status, plain = node.get("/metrics/resource")
    assert status == 200
    context = ssl.create_default_context(cafile=str(node.data / "pki" / "ca.crt"))
    link = http.client.HTTPSConnection("127.0.0.1", node.port, timeout=10, context=context)
    wanted = {"Authorization": f"Bearer {node.token}", "Accept-Encoding": "gzip"}
    link.request("POST", "/metrics/resource", headers=wanted)  # kubelet: any method
    answer = link.getresponse()
    packed = answer.read()
    link.close()
    assert answer.getheader("content-encoding") == "gzip"
    assert answer.getheader("content-type") == "text/plain; version=0.0.4; charset=utf-8"
    assert parse_exposition(gzip.decompress(packed).decode()).types == parse_exposition(plain.decode()).types


def test_cadvisors_answers_are_below_podbus(node: Node) -> None:
    """Cases 43 and 46."""
    machine = node.json("/podbus/cadvisor/api/v1.3/machine")
    assert machine["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    container = node.docker("ps", "-q", "--no-trunc", "--filter", "name=k8s_busy_web-n1_default_").strip()
    told = node.json(f"/podbus/cadvisor/api/v1.3/docker/{container[:12]}")
    (info,) = told.values()
    assert info["id"] == container
    assert info["stats"][-1]["cpu"]["usage"]["total"] > 0
    assert node.get("/podbus/cadvisor/api/v1.3/docker/unknown")[0] == 500
    assert node.get("/podbus/cadvisor/api/v7/machine")[0] == 400


@pytest.mark.long
def test_what_a_pod_writes_shows_in_its_layer_its_logs_and_its_volume(node: Node) -> None:
    """Cases 10 and 12: in the layer or the volume, wherever it was written, within the walks' minute."""

    def disks() -> tuple[int, int, int]:
        pod = next(one for one in node.json("/stats/summary")["pods"] if one["podRef"]["name"] == "web-n1")
        http = next(one for one in pod["containers"] if one["name"] == "http")
        return http["rootfs"]["usedBytes"], http["logs"]["usedBytes"], pod["volume"][0]["usedBytes"]

    before = eventually(disks, within=30)
    container = node.docker("ps", "-q", "--no-trunc", "--filter", "name=k8s_http_web-n1_default_").strip()
    write = "dd if=/dev/zero bs=1M count=50 of=/big; dd if=/dev/zero bs=1M count=7 of=/www/big; sync"
    node.docker("exec", container, "sh", "-c", write)
    node.docker("exec", container, "sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x > /proc/1/fd/1")
    eventually(
        lambda: all(now > then + (4 << 20) for now, then in zip(disks(), before, strict=True)), within=90, every=1
    )
    grown = [now - then for now, then in zip(disks(), before, strict=True)]
    assert grown[0] == pytest.approx(50 << 20, abs=1 << 20)
    assert grown[1] >= 5_000_000
    assert grown[2] == pytest.approx(7 << 20, abs=1 << 20)
