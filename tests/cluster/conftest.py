"""One real control plane for all, and one node that has joined it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.cluster import BIN, Cluster
from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.joined_node import JoinedNode


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if not (BIN / "kube-apiserver").exists():
        missing = f"{BIN} has no kube-apiserver: make test-cluster builds it"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with TemporaryDirectory(prefix="kc", dir="/tmp") as directory:
        made = Cluster(Path(directory))
        try:
            made.start()
            yield made
        finally:
            made.stop()


@pytest.fixture(scope="module")
def node(cluster: Cluster) -> Iterator[JoinedNode]:
    """Ready, and with no pods but what the module makes; at its end all of them go."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = JoinedNode(Path(directory), cluster, workers=2)
        try:
            made.start()
            eventually(lambda: is_node_ready(cluster), within=60)
            yield made
            cluster.kubectl("delete", "deployments,pods", "--all", "--grace-period=1", within=120)
        finally:
            made.close()


def is_node_ready(cluster: Cluster) -> bool:
    node = cluster.get("/api/v1/nodes/localhost")
    conditions = {one["type"]: one["status"] for one in node["status"]["conditions"]}
    taints = [taint["key"] for taint in node["spec"].get("taints", [])]
    return conditions.get("Ready") == "True" and "node.kubernetes.io/not-ready" not in taints
