"""Several agents on one engine: each touches what is its own by podbus.instance, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from services.podworker.handlers.relist import RELIST_SECONDS
from shared.kube import names
from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, NodeMaker, is_ready, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.timeout(120)]

STRANGER_UID = f"5{uuid4().hex[1:]}"


@pytest.fixture
def strangers() -> Iterator[list[str]]:
    """Ids of a pod that a kubelet with dockershim would have made: its labels and names, without podbus.instance."""
    client = docker_client()
    made: list[str] = []
    labels = {
        names.LABEL_POD_NAME: "a-n1",
        names.LABEL_POD_NAMESPACE: "default",
        names.LABEL_POD_UID: STRANGER_UID,
    }
    sandbox = {**labels, names.LABEL_CONTAINER_NAME: "POD", names.LABEL_DOCKER_TYPE: names.TYPE_SANDBOX}
    container = {
        **labels,
        names.LABEL_CONTAINER_NAME: "main",
        names.LABEL_DOCKER_TYPE: names.TYPE_CONTAINER,
        "annotation.io.kubernetes.container.restartCount": "0",
    }
    try:
        for kind, own in (("POD", sandbox), ("main", container)):
            name = f"k8s_{kind}_a-n1_default_{STRANGER_UID}_0"
            created = client.create_container("busybox:1.36", ["sleep", "3600"], name=name, labels=own)
            made.append(created["Id"])
            client.start(created["Id"])
        yield made
    finally:
        for id_ in made:
            client.remove_container(id_, force=True)
        client.close()


def states(ids: list[str]) -> list[tuple[str, int, str]]:
    """What a touch would change: state, pid and start of each."""
    client = docker_client()
    try:
        found: list[dict[str, Any]] = [client.inspect_container(id_)["State"] for id_ in ids]
    finally:
        client.close()
    return [(state["Status"], state["Pid"], state["StartedAt"]) for state in found]


def manifest(container: str) -> str:
    """A pod with the stranger's very name and UID: the names of its containers are taken."""
    text = sleeper("a", grace=1).replace("name: main", f"name: {container}")
    return text.replace("metadata:\n", f"metadata:\n  uid: {STRANGER_UID}\n")


def relisted_again(node: Node) -> None:
    """Wait for a complete list of the engine."""
    before = float(node.json("/podbus")["runtime"]["relistedAt"])
    eventually(
        lambda: float(node.json("/podbus")["runtime"]["relistedAt"]) > before + RELIST_SECONDS / 2,
        within=6 * RELIST_SECONDS,
        every=0.5,
    )


def runs(node: Node, container: str) -> bool:
    return any(name.startswith(f"k8s_{container}_") for name in node.containers()) and is_ready(node.pod("a"))


def test_two_instances_and_a_strangers_pod_leave_one_another_alone(a_node: NodeMaker, strangers: list[str]) -> None:
    """Both have a pod of one name and UID, the stranger's. Neither sees the others' pods; a full list of the engine,
    an edit, the end of an agent and of its pods change nothing of theirs."""
    untouched = states(strangers)
    one, two = a_node(), a_node()
    for node in (one, two):
        node.apply("a.yaml", manifest("main"))
        node.apply("b.yaml", sleeper("b", grace=1))
    eventually(lambda: one.ready_pods() == two.ready_pods() == {"a", "b"}, within=20)
    assert one.instance != two.instance
    of_one, of_two = one.containers(), two.containers()
    assert len(of_one) == len(of_two) == 4
    assert not set(of_one.values()) & set(of_two.values())
    relisted_again(one)
    assert one.containers(every=True) == of_one
    assert two.containers(every=True) == of_two
    assert {p["metadata"]["uid"] for p in json.loads(one.get("/runningpods/")[1])["items"]} == {
        p["metadata"]["uid"] for p in one.pods().values()
    }
    one.withdraw("b.yaml")
    one.apply("a.yaml", manifest("edited"))
    eventually(lambda: runs(one, "edited") and "b" not in one.pods(), within=20)
    assert two.containers(every=True) == of_two
    assert one.podbus("down", "--pods").returncode == 0
    assert one.containers(every=True) == {}
    assert two.containers(every=True) == of_two
    assert two.ready_pods() == {"a", "b"}
    assert states(strangers) == untouched


def test_a_strangers_sandboxes_are_told(a_node: NodeMaker, strangers: list[str]) -> None:
    node = a_node()
    eventually(lambda: (node.json("/podbus")["runtime"] or {})["foreignSandboxes"] >= 1, within=15)
    assert f"k8s_POD_a-n1_default_{STRANGER_UID}_0" in node.log()
