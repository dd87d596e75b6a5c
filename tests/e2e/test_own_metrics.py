"""/metrics and /metrics/probes of a node with three workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.exposition import Exposition, parse_exposition
from tests.support.node import Node, is_ready, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.timeout(180)]

PODS = 6
PROBE = "    readinessProbe: {periodSeconds: 1, exec: {command: ['true']}}\n"
DOCUMENT = Path(__file__).parents[2] / "docs/metrics.md"


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory) / "0", workers=3)
        for number in range(PODS):
            made.apply(f"p{number}.yaml", sleeper(f"p{number}") + (PROBE if number == 0 else ""))
        made.apply("bad.yaml", sleeper("bad", command="exit 3", restartPolicy="Never"))
        made.start()
        try:
            eventually(lambda: len(made.ready_pods()) == PODS, within=90)
            yield made
        finally:
            made.close()


def page(node: Node, path: str) -> Exposition:
    status, body = node.get(path)
    assert status == 200
    assert list(text_string_to_metric_families(body.decode()))
    return parse_exposition(body.decode())


def value(found: Exposition, name: str, **labels: str) -> float:
    """0 where there is no such series (yet)."""
    return sum(sample.value for sample in found.of(name, **labels))


def test_each_pod_counts_once_however_many_workers_there_are(node: Node) -> None:
    """C08"""

    def is_told() -> bool:
        found = page(node, "/metrics")
        assert value(found, "kubelet_node_name", node="n1") == 1
        assert value(found, "kubelet_running_pods") == PODS
        assert value(found, "kubelet_running_containers", container_state="running") == PODS
        assert value(found, "kubelet_running_containers", container_state="exited") == 1
        assert value(found, "podbus_owned_slots") == 256
        assert value(found, "podbus_owned_pods") == PODS + 1
        assert value(found, "kubelet_started_pods_total") == PODS + 1
        assert value(found, "kubelet_started_containers_total", container_type="container") == PODS + 1
        assert value(found, "kubelet_pod_start_duration_seconds_count") >= PODS
        assert value(found, "podbus_workers") == 3
        return True

    eventually(is_told, within=60)


def test_what_the_engine_was_asked_for_is_counted_and_timed(node: Node) -> None:
    def is_told() -> bool:
        found = page(node, "/metrics")
        for name in ("run_podsandbox", "create_container", "start_container"):
            count = value(found, "kubelet_runtime_operations_total", operation_type=name)
            assert count == PODS + 1
            assert value(found, "kubelet_runtime_operations_duration_seconds_count", operation_type=name) == count
        assert value(found, "kubelet_pleg_relist_duration_seconds_count") >= 3
        return True

    eventually(is_told, within=60)


def test_every_family_is_documented_with_its_type_and_nothing_is_told_that_is_not(node: Node) -> None:
    rows = [line.split(" | ") for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    written = {cells[0].strip("| `"): cells[1].strip() for cells in rows}
    told = page(node, "/metrics").types | page(node, "/metrics/probes").types
    assert told.items() <= written.items()
    # those with labels that count what hasn't happened here
    assert written.keys() - told.keys() <= {
        "kubelet_runtime_operations_errors_total",
        "kubelet_started_containers_errors_total",
        "podbus_image_pull_duration_seconds",
    }


def test_results_of_probes_have_a_page_of_their_own(node: Node) -> None:
    uid = node.pod("p0")["metadata"]["uid"]
    labels = {"container": "main", "namespace": "default", "pod": "p0-n1", "pod_uid": uid, "probe_type": "Readiness"}
    eventually(
        lambda: value(page(node, "/metrics/probes"), "prober_probe_total", **labels, result="successful") > 0, within=60
    )
    assert page(node, "/metrics/probes").types == {
        "prober_probe_total": "counter",
        "process_start_time_seconds": "gauge",
    }
    assert "prober_probe_total" not in page(node, "/metrics").types


def test_requests_are_counted_by_the_kubelets_labels(node: Node) -> None:
    before = page(node, "/metrics")
    labels = {"method": "GET", "path": "stats", "server_type": "readwrite", "long_running": "false"}
    node.get("/stats/summary")
    found = page(node, "/metrics")
    for name in ("kubelet_http_requests_total", "kubelet_http_requests_duration_seconds_count"):
        assert value(found, name, **labels) == value(before, name, **labels) + 1
    assert value(found, "kubelet_http_inflight_requests", path="metrics") == 1


def test_they_are_for_those_who_may_get_the_other_metrics(node: Node) -> None:
    for path in ("/metrics", "/metrics/probes"):
        assert node.get(path, token="")[0] == 401
        assert node.get(path, method="POST")[0] == 200
        assert node.get(f"{path}/")[0] == 404


@pytest.fixture(scope="module")
def scraper(node: Node) -> str:
    """A token of the role metrics."""
    made = node.podbus("token", "--user", "m", "--role", "metrics")
    assert made.returncode == 0, made.stderr
    eventually(lambda: node.get("/metrics", token=made.stdout.strip())[0] == 200, within=15)
    return made.stdout.strip()


def test_c01_metrics_server_finds_a_value_of_everything_that_runs(node: Node, scraper: str) -> None:
    """metrics-server drops the node, or a whole pod, for a value that is missing or 0."""

    def is_complete() -> bool:
        status, body = node.get("/metrics/resource", token=scraper)
        assert status == 200
        found = parse_exposition(body.decode())
        assert all(sample.at for sample in found.samples if sample.name.startswith("node_"))
        for name in ("cpu_usage_seconds_total", "memory_working_set_bytes"):
            assert value(found, f"node_{name}") > 0
            for number in range(PODS):
                labels = {"pod": f"p{number}-n1", "namespace": "default"}
                assert value(found, f"pod_{name}", **labels) > 0
                assert value(found, f"container_{name}", container="main", **labels) > 0
        return True

    eventually(is_complete, within=60)
    assert node.get("/pods", token=scraper)[0] == 403


def test_c09_prometheus_finds_every_container_by_its_six_labels(node: Node, scraper: str) -> None:
    def is_complete() -> bool:
        status, body = node.get("/metrics/cadvisor", token=scraper)
        assert status == 200
        found = parse_exposition(body.decode())
        for number in range(PODS):
            labels = {"container": "main", "pod": f"p{number}-n1", "namespace": "default"}
            (sample,) = found.of("container_cpu_usage_seconds_total", **labels)
            assert sample.labels.keys() == {"container", "pod", "namespace", "id", "image", "name", "cpu"}
            assert all(sample.labels.values())
        return True

    eventually(is_complete, within=60)


def test_a_worker_that_died_is_not_told_for_long_and_its_pods_still_count_once(node: Node) -> None:
    pid = node.pids("podworker")[0]
    os.kill(pid, signal.SIGKILL)

    def is_told() -> bool:
        found = page(node, "/metrics")
        assert value(found, "podbus_owned_slots") == 256
        assert value(found, "podbus_owned_pods") == PODS + 1
        assert value(found, "kubelet_running_pods") == PODS
        starts = found.of("podbus_process_start_time_seconds")
        assert len([one for one in starts if one.labels["process"].startswith("podworker")]) == 3
        return True

    eventually(is_told, within=90)
    assert all(is_ready(node.pod(f"p{number}")) for number in range(PODS))
