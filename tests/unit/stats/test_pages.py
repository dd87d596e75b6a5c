"""/metrics/resource and /metrics/cadvisor on fakes: what is told, when, and in which form."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from services.stats.core.model import ImageTarget, PodTarget, Targets
from tests.support.exposition import Exposition, parse_exposition
from tests.support.stats_node import POD, POD_PATH, WEB, Node

GOLDEN = Path(__file__).parents[2] / "golden/wire"
LABELS = {"container", "id", "image", "name", "namespace", "pod"}
WEB_PATH = f"{POD_PATH}/{WEB.id}"
FILES = {
    "memory.stat": b"anon 8\nfile 4\nfile_mapped 2\nactive_file 3\ninactive_file 1\npgfault 7\npgmajfault 1\n",
    "cpu.stat": b"usage_usec 10\nuser_usec 7\nsystem_usec 3\nnr_periods 5\nnr_throttled 2\nthrottled_usec 1500000\n",
    "cpu.max": b"20000 100000\n",
    "cpu.weight": b"100\n",
    "memory.max": b"64\n",
    "memory.events": b"max 3\noom 1\noom_kill 1\n",
    "pids.current": b"2\n",
    "pids.max": b"max\n",
    "io.stat": b"254:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n",
    "cgroup.procs": b"41\n42\n",
}


@pytest.fixture
def node() -> Node:
    made = Node()
    made.cgroups.files = dict(FILES)
    return made


def run(node: Node, pod: PodTarget = POD) -> None:
    """The pod starts, and is busy for two passes."""
    node.start_pod(pod)
    node.cgroups.cpu_ns[f"{pod.cgroup}/{pod.sandbox_id}"] = 1
    node.collector.set_targets(Targets(pods=(pod,)))
    node.advance(10, {pod.cgroup: 0.6, **{f"{pod.cgroup}/{one.id}": 0.5 for one in pod.containers}})
    node.collector.tick()


def resource(node: Node) -> Exposition:
    return parse_exposition(node.collector.resource_page().decode())


def cadvisor(node: Node) -> Exposition:
    return parse_exposition(node.collector.cadvisor_page().decode())


def test_resource_metrics_have_the_kubelets_names_types_and_labels(node: Node) -> None:
    run(node)
    told = resource(node)
    golden = parse_exposition((GOLDEN / "metrics-resource.txt").read_text())
    assert golden.types.items() <= told.types.items()
    for sample in golden.samples:
        assert any(one.labels.keys() == sample.labels.keys() for one in told.of(sample.name)), sample.name
    newer = told.types.keys() - golden.types.keys()
    assert newer == {"container_start_time_seconds", "resource_scrape_error"}, "both came after 1.20"


def test_resource_samples_have_the_milliseconds_of_their_reading_and_they_advance(node: Node) -> None:
    """Case 19."""
    run(node)
    untimed = {"container_start_time_seconds", "scrape_error", "resource_scrape_error"}
    first = {(one.name, *one.labels.values()): one.at for one in resource(node).samples if one.name not in untimed}
    node.advance(15, {POD_PATH: 0.6, WEB_PATH: 0.5})
    node.collector.tick()
    for one in resource(node).samples:
        before = first.get((one.name, *one.labels.values()))
        assert (one.at is None) == (one.name in untimed)
        assert one.at is None or (before is not None and one.at == before + 15_000)


def test_metrics_server_keeps_every_running_pod_over_two_scrapes(node: Node) -> None:
    """Its rules: no zero, a later time, an unchanged start; then a rate can be told."""
    run(node)
    first = resource(node)
    node.advance(15, {POD_PATH: 0.6, WEB_PATH: 0.5})
    node.collector.tick()
    second = resource(node)
    for page in (first, second):
        for name in ("container_cpu_usage_seconds_total", "container_memory_working_set_bytes"):
            (sample,) = page.of(name, container="web", pod="web", namespace="default")
            assert sample.value > 0
    cpu = [page.of("container_cpu_usage_seconds_total")[0] for page in (first, second)]
    assert cpu[0].at is not None and cpu[1].at is not None
    assert (cpu[1].value - cpu[0].value) / ((cpu[1].at - cpu[0].at) / 1000) == pytest.approx(0.5)
    assert first.of("container_start_time_seconds") == second.of("container_start_time_seconds")


def test_a_container_that_used_no_cpu_yet_does_not_cost_its_pod(node: Node) -> None:
    """Case 25, and metrics-server, which drops a pod whole for one zero."""
    node.start_pod()
    node.collector.set_targets(Targets(pods=(POD,)))
    assert resource(node).of("container_cpu_usage_seconds_total") == []
    assert cadvisor(node).of("container_cpu_usage_seconds_total", container="web") == []


def test_an_engine_that_does_not_answer_is_an_error_and_no_pods(node: Node) -> None:
    """Case 21."""
    run(node)
    node.collector.set_targets(Targets(pods=(POD,), engine_trouble="connection refused"))
    told = resource(node)
    assert [one.value for one in told.of("resource_scrape_error")] == [1.0]
    assert [one.value for one in told.of("scrape_error")] == [1.0]
    assert not any("pod" in one.labels for one in told.samples)
    assert told.of("node_cpu_usage_seconds_total")


def test_a_restarted_container_begins_anew_with_a_newer_start(node: Node) -> None:
    """Cases 13 and 22."""
    run(node)
    again = replace(WEB, id="d" * 64, pid=51, started_at=WEB.started_at + 60, attempt=1)
    pod = replace(POD, containers=(again,))
    del node.cgroups.cpu_ns[WEB_PATH]
    node.start_pod(pod)
    node.cgroups.cpu_ns[f"{POD_PATH}/{again.id}"] = 1_000_000
    node.collector.set_targets(Targets(pods=(pod,)))
    told = resource(node)
    assert [one.value for one in told.of("container_start_time_seconds")] == [again.started_at]
    assert [one.value for one in told.of("container_cpu_usage_seconds_total")] == [0.001]


def test_no_row_of_an_ended_container_is_left(node: Node) -> None:
    """Case 31: neither after its cgroup went nor after its report did."""
    run(node)
    assert cadvisor(node).of("container_cpu_usage_seconds_total", container="web")
    del node.cgroups.cpu_ns[WEB_PATH]
    node.advance(10)
    node.collector.tick()
    assert not any(WEB.id in one.labels.get("id", "") for one in cadvisor(node).samples)
    node.collector.set_targets(Targets())
    assert not any(one.labels.get("pod") for one in cadvisor(node).samples)


def test_container_samples_have_six_labels_and_their_own(node: Node) -> None:
    """Case 23; doubles and lines of another form fail in the parser."""
    run(node)
    for one in cadvisor(node).samples:
        if one.name.startswith("container_") and one.name != "container_scrape_error":
            assert one.labels.keys() >= LABELS, one
            own = one.labels.keys() - LABELS
            assert own <= {"cpu", "device", "interface", "failure_type", "scope", "ulimit"}, one


def test_rows_are_the_nodes_the_pods_the_sandboxes_and_the_containers(node: Node) -> None:
    """Cases 28 and 29: the network only at the sandbox, the pod's row without container and image."""
    run(node)
    told = cadvisor(node)
    rows = {one.labels["id"]: one.labels for one in told.of("container_memory_usage_bytes")}
    assert list(rows) == ["/", POD_PATH, f"{POD_PATH}/{POD.sandbox_id}", WEB_PATH]
    assert (rows[POD_PATH]["container"], rows[POD_PATH]["image"], rows[POD_PATH]["pod"]) == ("", "", "web")
    sandbox = rows[f"{POD_PATH}/{POD.sandbox_id}"]
    assert (sandbox["container"], sandbox["name"]) == ("POD", "k8s_POD_web_default_u-1_0")
    assert rows[WEB_PATH]["name"] == "k8s_web_web_default_u-1_0"
    received = told.of("container_network_receive_bytes_total")
    assert [one.labels["container"] for one in received] == ["POD"]


def test_what_a_cgroups_files_say_is_told_in_seconds_and_bytes(node: Node) -> None:
    run(node)
    told = cadvisor(node)
    expected = {
        "container_cpu_user_seconds_total": 7e-6,
        "container_cpu_system_seconds_total": 3e-6,
        "container_cpu_cfs_periods_total": 5,
        "container_cpu_cfs_throttled_periods_total": 2,
        "container_cpu_cfs_throttled_seconds_total": 1.5,
        "container_memory_cache": 4,
        "container_memory_mapped_file": 2,
        "container_memory_failcnt": 3,
        "container_oom_events_total": 1,
        "container_threads": 2,
        "container_threads_max": 0,
        "container_processes": 2,
        "container_spec_cpu_quota": 20_000,
        "container_spec_cpu_period": 100_000,
        "container_spec_cpu_shares": 2 + 99 * 262_142 // 9_999,
        "container_spec_memory_limit_bytes": 64,
        "container_fs_reads_bytes_total": 10,
        "container_fs_writes_bytes_total": 20,
        "container_fs_reads_total": 1,
        "container_fs_writes_total": 2,
    }
    assert {name: told.of(name, container="web")[0].value for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("unlimited", [b"max\n", b"9223372036854771712\n"])
def test_an_unlimited_container_has_no_quota_and_a_limit_of_zero(node: Node, unlimited: bytes) -> None:
    """Cases 26 and 37."""
    node.cgroups.files |= {"cpu.max": b"max 100000\n", "memory.max": unlimited}
    run(node)
    told = cadvisor(node)
    assert not any(one.name.startswith("container_cpu_cfs") for one in told.samples)
    assert told.of("container_spec_cpu_quota") == []
    assert [one.value for one in told.of("container_spec_memory_limit_bytes", container="web")] == [0.0]


def test_names_are_escaped(node: Node) -> None:
    """Case 49."""
    odd = 'a"b\\c\nd'
    pod = replace(POD, containers=(replace(WEB, name=odd, image=odd),))
    run(node, pod)
    assert [one.labels["container"] for one in resource(node).of("container_cpu_usage_seconds_total")] == [odd]
    assert cadvisor(node).of("container_cpu_usage_seconds_total", container=odd, image=odd)


def test_many_scrapes_share_one_pass(node: Node) -> None:
    """Case 41: whoever asks, what was read in this round is told."""
    run(node)
    first = node.collector.cadvisor_page()
    node.cgroups.reads.clear()
    assert all(node.collector.cadvisor_page() is first for _ in range(10))
    assert node.cgroups.reads == []


def test_what_nobody_asks_for_is_not_read(node: Node) -> None:
    """The sandbox is told only on this page: it's read from the first request on, and no more some minutes later."""
    run(node)
    sandbox = f"{POD_PATH}/{POD.sandbox_id}"
    assert sandbox not in node.cgroups.reads
    node.collector.cadvisor_page()
    assert sandbox in node.cgroups.reads
    node.advance(301)
    node.cgroups.reads.clear()
    node.collector.tick()
    assert sandbox not in node.cgroups.reads


def test_kills_for_memory_outlive_the_cgroup_that_counted_them(node: Node) -> None:
    """By the last reading, and by what the status says of an instance that was never read in time."""
    run(node)
    cadvisor(node)
    again = replace(WEB, id="d" * 64, pid=51, started_at=WEB.started_at + 60, attempt=1)
    pod = replace(POD, containers=(again,), oom_kills=(("web", WEB.id, 1), ("web", "e" * 64, 1)))
    node.start_pod(pod)
    node.cgroups.cpu_ns[f"{POD_PATH}/{again.id}"] = 1
    node.cgroups.files["memory.events"] = b"oom_kill 0\n"
    node.collector.set_targets(Targets(pods=(pod,)))
    assert [one.value for one in cadvisor(node).of("container_oom_events_total", container="web")] == [2.0]


def test_the_engine_and_the_machine_are_told(node: Node) -> None:
    images = ImageTarget(root_dir="/docker")
    node.collector.set_targets(Targets(images=images, engine_version="20.10.24"))
    told = cadvisor(node)
    assert told.of("cadvisor_version_info")[0].labels["dockerVersion"] == "20.10.24"
    assert told.of("machine_cpu_cores")
    assert [one.value for one in told.of("container_scrape_error")] == [0.0]


def test_kubernetes_mixins_joins_find_every_container(node: Node) -> None:
    """Its recording rules keep rows with an image, and join on namespace and pod."""
    run(node, replace(POD, containers=(replace(WEB, image="sha256:ab"),)))
    told = cadvisor(node)
    for name in ("container_cpu_usage_seconds_total", "container_memory_working_set_bytes", "container_memory_rss"):
        kept = [one for one in told.of(name) if one.labels["image"] and one.labels["container"] != "POD"]
        assert [(one.labels["namespace"], one.labels["pod"]) for one in kept] == [("default", "web")], name
