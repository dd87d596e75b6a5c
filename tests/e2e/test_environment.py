"""Variables of real containers: several pods side by side on one node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node
from tests.support.small_pods import WAIT, apply, config_map, container, events, mount, ready, run_in, waiting

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            yield made
        finally:
            made.close()


def test_a_pod_knows_its_addresses(node: Node) -> None:
    """E04"""
    fields = ("status.podIP", "status.podIPs", "status.hostIP", "spec.nodeName", "metadata.uid")
    env = [{"name": field.split(".")[1], "valueFrom": {"fieldRef": {"fieldPath": field}}} for field in fields]
    apply(node, "e04", container(WAIT, env=env))
    ready(node, "e04")
    found = dict(line.split("=", 1) for line in run_in(node, "e04", "env").splitlines() if "=" in line)
    pod = node.pod("e04")
    status = pod["status"]
    assert found["podIP"] == found["podIPs"] == status["podIP"]
    assert (found["hostIP"], found["nodeName"], found["uid"]) == (status["hostIP"], "n1", pod["metadata"]["uid"])


def test_a_container_waits_for_a_missing_object_and_starts_when_it_comes(node: Node) -> None:
    """E07"""
    ref = {"name": "e07-late", "key": "k"}
    optional = {"name": "e07-never", "key": "k", "optional": True}
    env = [
        {"name": "A", "valueFrom": {"configMapKeyRef": ref}},
        {"name": "B", "valueFrom": {"configMapKeyRef": optional}},
    ]
    apply(node, "e07", container(WAIT, env=env))
    eventually(
        lambda: waiting(node, "e07") == ("CreateContainerConfigError", 'configmap "e07-late" not found'), within=15
    )
    assert 'Error: configmap "e07-late" not found' in eventually(lambda: events(node, "e07", "Failed"), within=10)
    node.apply("e07-late.yaml", yaml.safe_dump(config_map("e07-late", other="x")))
    told = "couldn't find key k in ConfigMap default/e07-late"
    # at once: a change is told, nobody waits for the next try
    eventually(lambda: waiting(node, "e07")[1] == told, within=6)
    node.apply("e07-late.yaml", yaml.safe_dump(config_map("e07-late", k="v")))
    ready(node, "e07")
    assert run_in(node, "e07", 'echo "$A ${B-unset}"') == "v unset\n"


def test_all_keys_of_objects_with_a_prefix(node: Node) -> None:
    """E08: env wins, then the last source."""
    sources = [{"prefix": "P_", "configMapRef": {"name": f"e08-{n}"}} for n in ("one", "two")]
    apply(
        node,
        "e08",
        container(WAIT, envFrom=sources, env=[{"name": "P_c", "value": "env"}]),
        more=(config_map("e08-one", a="1", b="1", c="1"), config_map("e08-two", b="2", c="2")),
    )
    ready(node, "e08")
    assert run_in(node, "e08", "echo $P_a $P_b $P_c") == "1 2 env\n"


def test_a_file_of_an_init_container_gives_variables(node: Node) -> None:
    """E09"""
    volumes = [{"name": "v", "emptyDir": {}}]
    for name, text in (("e09", "K='v 1'"), ("e09-bad", "K=v")):
        env = [{"name": "K", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "d/env", "key": "K"}}}]
        init = container(f'mkdir /v/d && echo "{text}" > /v/d/env', "i", volumeMounts=[mount("v", "/v")])
        apply(node, name, container(WAIT, env=env), initContainers=[init], volumes=volumes)
    ready(node, "e09")
    assert run_in(node, "e09", "echo $K") == "v 1\n"
    told = "couldn't parse file d/env of volume v: line 1: the value must be in single quotes"
    eventually(lambda: waiting(node, "e09-bad") == ("CreateContainerConfigError", told), within=15)
