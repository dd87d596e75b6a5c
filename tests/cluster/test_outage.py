"""The API server goes and comes back; and what the node asks of it while nothing happens."""

from __future__ import annotations

import time

import pytest

from shared.kube.times import parse_rfc3339
from tests.cluster.test_kubectl import a_pod, ready, start
from tests.support.cluster import Cluster
from tests.support.eventually import eventually
from tests.support.joined_node import JoinedNode

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

CRASHING = "sleep 1; exit 3"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/localhost"


def survives(cluster: Cluster, node: JoinedNode, seconds: float) -> None:
    """Pods go on; after the outage the API server knows what has happened meanwhile, without a storm."""
    start(cluster, "steady", a_pod("steady"))
    cluster.apply(a_pod("crashing", CRASHING))
    eventually(lambda: "crashing" in node.pods(), within=30)
    steady = cluster.pod("steady")["status"]["containerStatuses"][0]["containerID"]
    cluster.kill_server()
    began = time.monotonic()
    eventually(lambda: node.pod("crashing")["status"]["containerStatuses"][0]["restartCount"] >= 2, within=90)
    eventually(lambda: time.monotonic() - began >= seconds, within=seconds + 30, every=0.5)
    here = node.pod("crashing")["status"]["containerStatuses"][0]["restartCount"]
    assert node.pod("steady")["status"]["containerStatuses"][0]["containerID"] == steady
    before = len(cluster.audited("system:node:localhost"))
    cluster.start_server()

    def is_told() -> bool:
        return bool(cluster.pod("crashing")["status"]["containerStatuses"][0]["restartCount"] >= here)

    eventually(is_told, within=45)
    eventually(lambda: time.time() - parse_rfc3339(cluster.get(LEASE)["spec"]["renewTime"]) < 20, within=30)
    # The node's controller may have called it unready meanwhile.
    shown = eventually(lambda: ready(cluster, "steady"), within=45)
    assert shown["status"]["containerStatuses"][0]["containerID"] == steady
    written = [
        event
        for event in cluster.audited("system:node:localhost")[before:]
        if event["objectRef"]["resource"] == "events" and event["verb"] in ("create", "patch")
    ]
    assert len(written) <= 25, "no event storm"


def test_an_outage_of_the_api_server_harms_no_pod(cluster: Cluster, node: JoinedNode) -> None:
    survives(cluster, node, 20)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_outage_of_three_minutes_harms_no_pod(cluster: Cluster, node: JoinedNode) -> None:
    survives(cluster, node, 180)


def test_a_pod_that_is_deleted_during_an_outage_of_the_node_is_let_go(cluster: Cluster, node: JoinedNode) -> None:
    """The agent is away, its container is ended behind its back, and the pod is deleted: it's let go all the same."""
    start(cluster, "left", a_pod("left"))
    node.stop()
    node.docker("rm", "-f", *[id_ for name, id_ in node.containers().items() if "_left_default_" in name])
    cluster.kubectl("delete", "pod", "left", "--wait=false")
    node.start()
    path = "/api/v1/namespaces/default/pods/left"
    eventually(lambda: cluster.call("GET", path)[0] == 404, within=60)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_hundred_pods_at_rest_cost_less_than_a_request_a_second(cluster: Cluster, node: JoinedNode) -> None:
    cluster.kubectl("create", "deployment", "many", "--image=busybox:1.36", "--replicas=100", "--", "sleep", "36000")
    eventually(lambda: "100/100" in cluster.kubectl("get", "deployment", "many"), within=300, every=2)
    settled = time.monotonic()
    eventually(lambda: time.monotonic() - settled > 30, within=60, every=1)
    before, began = len(cluster.audited("system:node:localhost")), time.monotonic()
    eventually(lambda: time.monotonic() - began > 120, within=180, every=1)
    asked = cluster.audited("system:node:localhost")[before:]
    assert len(asked) / (time.monotonic() - began) < 1, [one["requestURI"] for one in asked]
