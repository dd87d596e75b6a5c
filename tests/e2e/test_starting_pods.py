"""Init containers, sidecars and a container's own restart rules on the real engine: many pods on one node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

SERVES = "trap 'exit 0' TERM; sleep 3600 & wait"
RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
FIXED_UID = "6a1f0c52-8d7e-4a53-9c1b-0f2e7d3b5a94"


def container(name: str, line: str = SERVES, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox:1.36", "command": ["sh", "-c", line], **fields}


def sidecar(name: str, line: str = SERVES, **fields: Any) -> dict[str, Any]:
    return container(name, line, restartPolicy="Always", **fields)


PODS: dict[str, dict[str, Any]] = {
    "order": {
        "initContainers": [container("i1", "sleep 1"), container("i2", "sleep 1")],
        "containers": [container("main")],
    },
    "failing": {"initContainers": [container("i1", "exit 1")], "containers": [container("main")]},
    "beside": {
        "initContainers": [sidecar("s"), container("i2", "exit 0"), sidecar("t", "sleep 1; exit 0")],
        "containers": [container("main")],
        "restartPolicy": "Never",
    },
    "own": {"containers": [container("a", "exit 1", restartPolicy="Never"), container("b")]},
    "done": {
        "initContainers": [sidecar("s")],
        "containers": [container("main", "sleep 1")],
        "restartPolicy": "Never",
    },
    "again": {
        "initContainers": [container("i1", "exit 0"), sidecar("s")],
        "containers": [
            container("main"),
            container("watch", "sleep 2; exit 42", restartPolicy="Never", restartPolicyRules=[RULE]),
        ],
        "restartPolicy": "Never",
    },
    "fixed": {"containers": [container("main")]},
}


def manifest(name: str, spec: dict[str, Any]) -> str:
    uid = {"uid": FIXED_UID} if name == "fixed" else {}
    metadata = {"name": name, **uid}
    spec = {"terminationGracePeriodSeconds": 3, **spec}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            for name, spec in PODS.items():
                made.apply(f"{name}.json", manifest(name, spec))
            yield made
        finally:
            made.close()


def phase(node: Node, name: str) -> str:
    return str(node.pod(name)["status"]["phase"])


def statuses(node: Node, name: str) -> dict[str, dict[str, Any]]:
    status = node.pod(name)["status"]
    both = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    return {one["name"]: one for one in both}


def condition(node: Node, name: str, kind: str) -> str:
    conditions = {c["type"]: c["status"] for c in node.pod(name)["status"]["conditions"]}
    return str(conditions[kind])


def running(node: Node, name: str) -> set[str]:
    return {one for one, status in statuses(node, name).items() if "running" in status["state"]}


def test_init_containers_run_in_order(node: Node) -> None:
    """I01"""
    eventually(lambda: phase(node, "order") == "Running", within=30)
    seen = statuses(node, "order")
    first, second = (seen[name]["state"]["terminated"] for name in ("i1", "i2"))
    assert first["finishedAt"] <= second["startedAt"]
    assert second["finishedAt"] <= seen["main"]["state"]["running"]["startedAt"]
    for name in ("i1", "i2"):
        assert (seen[name]["ready"], seen[name]["state"]["terminated"]["reason"]) == (True, "Completed")
    assert condition(node, "order", "Initialized") == "True"


def test_a_failing_init_container_holds_its_pod_in_pending(node: Node) -> None:
    """I02"""
    eventually(lambda: statuses(node, "failing")["i1"]["restartCount"] >= 2, within=45)
    assert phase(node, "failing") == "Pending"
    assert statuses(node, "failing")["main"]["state"]["waiting"]["reason"] == "PodInitializing"
    assert condition(node, "failing", "Initialized") == "False"


def test_a_sidecar_runs_beside_the_next_and_is_restarted_in_a_never_pod(node: Node) -> None:
    """I06, I09"""
    eventually(lambda: statuses(node, "beside")["t"]["restartCount"] >= 1, within=30)
    assert phase(node, "beside") == "Running"
    seen = statuses(node, "beside")
    assert {"s", "main"} <= running(node, "beside")
    assert seen["i2"]["state"]["terminated"]["startedAt"] >= seen["s"]["state"]["running"]["startedAt"]
    assert (seen["s"]["restartCount"], seen["main"]["restartCount"]) == (0, 0)


def test_a_container_that_may_not_restart_stays_ended_beside_one_that_runs(node: Node) -> None:
    """R05"""
    eventually(lambda: "terminated" in statuses(node, "own")["a"]["state"], within=20)
    assert statuses(node, "own")["a"]["restartCount"] == 0
    assert (phase(node, "own"), condition(node, "own", "Ready")) == ("Running", "False")


def test_a_sidecar_ends_with_the_last_regular_container(node: Node) -> None:
    eventually(lambda: phase(node, "done") == "Succeeded" and not running(node, "done"), within=30)

    def none_runs() -> bool:
        """Not even the sandbox."""
        return not any("_done-n1_" in name for name in node.containers())

    eventually(none_runs, within=15)


def test_a_rule_restarts_all_containers_in_the_same_sandbox(node: Node) -> None:
    def started_over() -> bool:
        seen = statuses(node, "again")
        return len(seen) == 4 and all(one["restartCount"] >= 1 for one in seen.values())

    eventually(started_over, within=30)
    sandboxes = [name for name in node.containers(every=True) if "_again-n1_" in name and name.startswith("k8s_POD_")]
    assert [name.rpartition("_")[2] for name in sandboxes] == ["0"]
    last = statuses(node, "again")["main"]["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"]) == ("RestartingAllContainers", 137)


def test_an_edit_of_a_pod_with_a_fixed_uid_replaces_its_container_in_its_sandbox(node: Node) -> None:
    """W07, W08: for a file pod any field but resources counts."""
    eventually(lambda: phase(node, "fixed") == "Running", within=20)
    before = node.pod("fixed")["status"]["podIP"]
    (sandbox,) = [cid for name, cid in node.containers().items() if name.startswith("k8s_POD_fixed-")]
    edited = {"containers": [container("main", env=[{"name": "A", "value": "1"}])]}
    node.apply("fixed.json", manifest("fixed", edited))
    eventually(lambda: statuses(node, "fixed")["main"]["restartCount"] == 1, within=20)
    assert node.pod("fixed")["metadata"]["uid"] == FIXED_UID
    assert node.pod("fixed")["status"]["podIP"] == before
    assert sandbox in node.containers().values()


def test_a_container_removed_by_hand_is_made_again(node: Node) -> None:
    """W05"""
    eventually(lambda: phase(node, "own") == "Running", within=20)
    (victim,) = [cid for name, cid in node.containers().items() if name.startswith("k8s_b_own-")]
    node.docker("rm", "-f", victim)
    phases = set()

    def made_again() -> bool:
        phases.add(phase(node, "own"))
        seen = statuses(node, "own")["b"]
        return seen["restartCount"] >= 1 and "running" in seen["state"]

    eventually(made_again, within=30)
    assert phases == {"Running"}
