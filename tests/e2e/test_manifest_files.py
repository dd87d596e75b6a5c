"""What a manifest directory may hold, and what becomes of it: the file cases of the pod life cycle on one node."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, is_ready, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.timeout(240)]

CONTAINER = {"name": "main", "image": "busybox:1.36", "command": ["sleep", "3600"]}
READ = "readinessProbe:\n        terminationGracePeriodSeconds: 5\n        exec: {command: [ls]}\n"
LIVE = "livenessProbe:\n        successThreshold: 2\n        exec: {command: [ls]}\n"
ONE = "    - name: main\n      image: busybox:1.36\n      command: [sleep, '3600']\n"
INIT = "  initContainers:\n    - name: first\n      image: busybox:1.36\n      "
INVALID = {
    "twice": ONE + ONE,
    "grace": ONE + "      " + READ,
    "threshold": ONE + "      " + LIVE,
    "init-hook": ONE + INIT + "lifecycle: {preStop: {exec: {command: [ls]}}}\n",
    "rules-alone": ONE + INIT + "restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}]\n",
}
"""Name -> what follows `containers:` in its spec. None of these pods may run."""


def a_json_pod(name: str) -> dict[str, object]:
    spec = {"terminationGracePeriodSeconds": 0, "containers": [CONTAINER]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def with_env(text: str, value: str) -> str:
    return text.replace("name: main", f"name: main\n    env: [{{name: V, value: '{value}'}}]")


def container_id(node: Node, name: str) -> str:
    found: str = node.pod(name)["status"]["containerStatuses"][0]["containerID"]
    return found


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """All manifests are there before the agent is: what it does with them it does at its start."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        node = Node(Path(directory) / "0")
        write_all(node)
        node.start()
        yield node
        node.close()


def write_all(node: Node) -> None:
    node.apply("a.yaml", sleeper("a"))
    node.apply("no-extension", json.dumps(a_json_pod("js")))
    node.apply("two.yaml", sleeper("one") + "---\n" + sleeper("two"))
    node.apply("list.yaml", json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [a_json_pod("listed")]}))
    node.apply("b1.yaml", with_env(sleeper("twin"), "first"))
    node.apply("b2.yaml", with_env(sleeper("twin"), "second"))
    for name, containers in INVALID.items():
        text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n{containers}"
        node.apply(f"{name}.yaml", text)


def test_a_file_is_a_static_pod_of_this_node(node: Node) -> None:
    """S01, S05"""
    eventually(lambda: is_ready(node.pod("a")), within=15)
    pod = node.pod("a")
    meta, uid = pod["metadata"], pod["metadata"]["uid"]
    assert (meta["name"], meta["namespace"], pod["spec"]["nodeName"]) == (f"a-{node.name}", "default", node.name)
    assert any(name == f"k8s_main_a-{node.name}_default_{uid}_0" for name in node.containers())
    annotations = meta["annotations"]
    assert annotations["kubernetes.io/config.source"] == "file"
    assert annotations["kubernetes.io/config.hash"] == uid
    assert annotations["kubernetes.io/config.seen"]
    assert {"operator": "Exists", "effect": "NoExecute"} in pod["spec"]["tolerations"]


def test_json_without_an_extension_runs(node: Node) -> None:
    """S02"""
    eventually(lambda: is_ready(node.pod("js")), within=30)


def test_every_document_and_every_item_of_a_list_is_a_pod(node: Node) -> None:
    """S10 and S11, where this node takes what the kubelet drops."""
    eventually(lambda: {"one", "two", "listed"} <= node.ready_pods(), within=30)


def test_of_two_files_with_one_pod_the_first_runs_and_both_are_told(node: Node) -> None:
    """S13, with the first in the order of paths, not the last."""
    eventually(lambda: is_ready(node.pod("twin")), within=30)
    (env,) = node.pod("twin")["spec"]["containers"][0]["env"]
    assert env["value"] == "first"
    (source,) = node.json("/podbus/sources")["sources"]
    assert {"b1.yaml", "b2.yaml"} <= {one["path"].rpartition("/")[2] for one in source["errors"]}


def test_invalid_pods_are_refused_by_file_and_field(node: Node) -> None:
    """S19"""
    (source,) = node.json("/podbus/sources")["sources"]
    told = {error["path"].rpartition("/")[2] for error in source["errors"]}
    assert {f"{name}.yaml" for name in INVALID} <= told
    assert not INVALID.keys() & node.pods().keys()


def test_the_same_bytes_again_change_nothing(node: Node) -> None:
    """S08"""
    eventually(lambda: is_ready(node.pod("a")), within=15)
    before = container_id(node, "a")
    node.apply("a.yaml", sleeper("a"))
    os.utime(node.manifests / "a.yaml")
    node.apply("later.yaml", sleeper("later"))
    eventually(lambda: is_ready(node.pod("later")), within=30)
    assert container_id(node, "a") == before


def test_an_edit_is_a_new_pod(node: Node) -> None:
    """S07; that the two never run beside each other is test_replacement's."""
    eventually(lambda: is_ready(node.pod("one")), within=30)
    before, uid = container_id(node, "one"), node.pod("one")["metadata"]["uid"]
    node.apply("two.yaml", with_env(sleeper("one"), "edited") + "---\n" + sleeper("two"))
    eventually(lambda: node.pod("one")["metadata"]["uid"] != uid and is_ready(node.pod("one")), within=30)
    assert before != container_id(node, "one")


def test_a_uid_stays_over_restarts_and_so_do_the_containers(node: Node) -> None:
    """S04"""
    eventually(lambda: {"a", "js", "two"} <= node.ready_pods(), within=30)
    before = {name: (node.pod(name)["metadata"]["uid"], container_id(node, name)) for name in ("a", "js", "two")}
    assert all(len(uid) == 32 for uid, _ in before.values())
    for _ in range(2):
        node.stop()
        node.start()
        eventually(lambda: before.keys() <= node.ready_pods(), within=30)
        assert {n: (node.pod(n)["metadata"]["uid"], container_id(node, n)) for n in before} == before


def test_a_directory_that_comes_later_is_read(node: Node) -> None:
    """S15"""
    node.stop()
    shutil.rmtree(node.manifests)
    node.start()
    assert node.get("/healthz")[0] == 200
    node.manifests.mkdir()
    node.apply("late.yaml", sleeper("late"))
    eventually(lambda: is_ready(node.pod("late")), within=60)
