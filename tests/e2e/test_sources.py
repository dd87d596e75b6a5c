"""Pods from a directory and from a URL side by side on one node: what is told, what waits, and what ends when."""

from __future__ import annotations

import json
import shutil
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.manifest_server import ManifestServer, manifest_server, page
from tests.support.nats_server import free_port
from tests.support.node import Node, is_ready, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

CASES = Path(__file__).parent.parent / "cases"


@pytest.fixture(scope="module")
def server() -> Iterator[ManifestServer]:
    with manifest_server() as made:
        made.answers["/pods"] = page("")
        yield made


@pytest.fixture(scope="module")
def node(server: ManifestServer) -> Iterator[Node]:
    """One node for all cases."""
    docker_client().close()
    config = f"staticPodURL: {server.url('/pods')}\nhttpCheckFrequency: 200ms\n"
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory), config=config, workers=2)
        try:
            made.start()
            yield made
        finally:
            made.close()


def listed_at(node: Node) -> float:
    """When the engine's containers were last listed; 0 = no worker has said yet."""
    report = node.json("/podbus")["runtime"]
    return report["relistedAt"] if report else 0.0


def case(name: str) -> str:
    return (CASES / f"{name}.yaml").read_text()


def source(node: Node, name: str) -> dict[str, Any]:
    """What /podbus/sources says of it."""
    found: dict[str, Any] = {one["source"]: one for one in node.json("/podbus/sources")["sources"]}[name]
    return found


def events(node: Node, reason: str) -> list[str]:
    return [event["message"] for event in node.json("/podbus/events")["events"] if event["reason"] == reason]


def container_ids(node: Node, name: str) -> list[str]:
    return [status["containerID"] for status in node.pod(name)["status"]["containerStatuses"]]


def pod_containers(node: Node, name: str) -> list[str]:
    """Ids of all containers, sandboxes too, of the pod's name on this instance."""
    labels = (f"io.kubernetes.pod.name={name}-{node.name}", f"podbus.instance={node.instance}")
    filters = [part for label in labels for part in ("--filter", f"label={label}")]
    return node.docker("ps", "-aq", *filters).split()


def pod_list(*names: str, image: str = "busybox:1.36") -> str:
    spec = {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": image, "command": ["sleep", "999"]}],
    }
    items = [{"metadata": {"name": name}, "spec": spec} for name in names]
    return json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items})


def test_a_misplaced_field_is_named_with_its_file_and_the_right_place(node: Node) -> None:
    """Acceptance case 02: the pod runs with Always, never in silence."""
    node.apply("typo.yaml", case("02-misplaced-restart-policy"))
    path = str(node.manifests / "typo.yaml")

    def told() -> dict[str, Any]:
        found: dict[str, Any] = {one["path"]: one for one in source(node, "file")["warnings"]}[path]
        return found

    warning = eventually(told, within=15)
    assert (warning["field"], warning["line"]) == ("metadata.restartPolicy", 13)
    assert "spec.restartPolicy" in warning["hint"]
    eventually(lambda: any("metadata.restartPolicy" in text for text in events(node, "ManifestWarning")), within=15)
    eventually(lambda: node.pod("oneshot-typo")["status"]["containerStatuses"][0]["restartCount"] >= 1, within=60)
    assert node.pod("oneshot-typo")["spec"]["restartPolicy"] == "Always"
    node.withdraw("typo.yaml")


def test_a_pod_of_a_url_runs_and_says_where_it_is_from(node: Node, server: ManifestServer) -> None:
    """S06"""
    node.apply("by-file.yaml", sleeper("by-file"))
    server.answers["/pods"] = page(pod_list("by-url"))
    eventually(lambda: {"by-url", "by-file"} <= node.ready_pods(), within=60)
    by_url, by_file = node.pod("by-url"), node.pod("by-file")
    assert by_url["metadata"]["annotations"]["kubernetes.io/config.source"] == "http"
    assert by_url["metadata"]["annotations"]["kubernetes.io/config.hash"] == by_url["metadata"]["uid"]
    assert by_file["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"
    assert {"operator": "Exists", "effect": "NoExecute"} in by_file["spec"]["tolerations"]
    assert {"operator": "Exists", "effect": "NoExecute"} not in by_url["spec"].get("tolerations", [])


def test_a_list_with_an_invalid_item_changes_nothing(node: Node, server: ManifestServer) -> None:
    """S17; then an empty answer ends them all."""
    server.answers["/pods"] = page(pod_list("old-1", "old-2"))
    eventually(lambda: {"old-1", "old-2"} <= node.ready_pods(), within=60)
    before = container_ids(node, "old-1") + container_ids(node, "old-2")
    broken = json.loads(pod_list("old-1", "new", image="busybox:other"))
    broken["items"].append({"metadata": {"name": "bad"}, "spec": {"containers": []}})
    server.answers["/pods"] = page(json.dumps(broken))
    eventually(lambda: source(node, "http")["errors"], within=15)
    assert {"old-1", "old-2"} <= node.ready_pods() and "new" not in node.pods()
    assert container_ids(node, "old-1") + container_ids(node, "old-2") == before
    server.answers["/pods"] = page("")
    eventually(lambda: not {"old-1", "old-2"} & node.pods().keys(), within=20)


def test_of_two_pods_with_one_host_port_the_second_waits_for_the_first_to_go(node: Node) -> None:
    """Acceptance case 13: it says which port and who has it, disturbs nobody, and serves without a restart."""
    port = free_port()
    node.apply("holder.yaml", case("13-hostport-conflict").replace("18093", str(port)))
    eventually(lambda: is_ready(node.pod("port-holder")), within=60)
    before = container_ids(node, "port-holder")
    node.apply("wanter.yaml", case("13-hostport-conflict.second").replace("18093", str(port)))
    status = eventually(lambda: (s := node.pod("port-wanter")["status"]).get("reason") and s, within=15)
    assert (status["phase"], status["reason"]) == ("Failed", "NodePorts")
    assert f"{port}/TCP is taken by default/port-holder-n1" in status["message"]
    assert container_ids(node, "port-holder") == before
    node.withdraw("holder.yaml")

    def answer() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as page:
            text: str = page.read().decode().strip()
            return text if text == "second" else ""

    eventually(answer, within=90)
    eventually(lambda: is_ready(node.pod("port-wanter")), within=15)
    assert len([text for text in events(node, "NodePorts") if str(port) in text]) == 1
    node.withdraw("wanter.yaml")


def test_a_pod_withdrawn_while_the_agent_was_down_ends_after_its_return(node: Node) -> None:
    """Acceptance case 10, first run: nothing of it is left within 20 s, and what isn't ours is never touched."""
    node.apply("orphan.yaml", case("10-orphan-after-downtime"))
    eventually(lambda: is_ready(node.pod("orphan-me")), within=60)
    uid = node.pod("orphan-me")["metadata"]["uid"]
    label = f"io.kubernetes.pod.uid={uid}"
    foreign = node.docker("run", "-d", "--label", label, "busybox:1.36", "sleep", "3600").strip()
    try:
        node.stop()
        node.withdraw("orphan.yaml")
        node.start()
        eventually(lambda: not pod_containers(node, "orphan-me"), within=60)
        eventually(lambda: not (node.data / "pods" / uid).exists(), within=15)
        wanted = "Stopping container app: the pod is not in any pod source"
        eventually(lambda: wanted in events(node, "Killing"), within=15)
        assert node.docker("inspect", "-f", "{{.State.Running}}", foreign).strip() == "true"
    finally:
        node.docker("rm", "-f", foreign)


def test_while_a_url_has_never_answered_nobody_is_ended_as_an_orphan(node: Node, server: ManifestServer) -> None:
    """S20"""
    node.apply("old.yaml", sleeper("old-pod"))
    eventually(lambda: is_ready(node.pod("old-pod")), within=60)
    before = pod_containers(node, "old-pod")
    held = threading.Event()

    def hang(request: BaseHTTPRequestHandler) -> None:
        held.wait(60)

    server.answers["/pods"] = hang
    node.stop()
    node.withdraw("old.yaml")
    for path in node.data.glob("pods.db*"):  # so that only the engine knows of it
        path.unlink()
    shutil.rmtree(node.data / "nats" / "store")
    node.start()
    try:
        # until source speaks, its markers of before are shown
        eventually(lambda: (source(node, "file")["ready"], source(node, "http")["ready"]) == (True, False), within=30)
        listed = eventually(lambda: listed_at(node), within=60)
        eventually(lambda: listed_at(node) > listed, within=60)
        assert pod_containers(node, "old-pod") == before
    finally:
        server.answers["/pods"] = page("")
        held.set()
    eventually(lambda: source(node, "http")["ready"], within=30)
    eventually(lambda: not pod_containers(node, "old-pod"), within=60)
