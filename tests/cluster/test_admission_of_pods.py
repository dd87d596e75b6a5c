"""Pods that are bound to the node whatever a scheduler says of it: which are refused, and which take others' places."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.test_kubectl import a_pod, ready, start
from tests.support.cluster import Cluster
from tests.support.eventually import eventually
from tests.support.joined_node import NAME, JoinedNode

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

HERE = f"  nodeName: {NAME}\n"


def cpu(milli: int) -> str:
    return f"    resources: {{requests: {{cpu: {milli}m}}}}\n"


def test_pods_go_by_the_nodes_labels_and_taints(cluster: Cluster, node: JoinedNode) -> None:
    """node 34 and 35 of section 15; a label that was just set is no reason to refuse what the scheduler put here."""
    cluster.kubectl("label", "node", NAME, "disk=ssd")
    cluster.apply(a_pod("scheduled", spec="  nodeSelector: {disk: ssd}\n"))
    cluster.apply(a_pod("elsewhere", spec=HERE + "  nodeSelector: {disk: hdd}\n"))
    cluster.apply(a_pod("huge", spec=HERE, container=cpu(1_000_000)))
    eventually(lambda: ready(cluster, "scheduled"), within=60)
    assert refused(cluster, "elsewhere") == (
        "NodeAffinity",
        "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    )
    reason, message = refused(cluster, "huge")
    assert reason == "OutOfcpu"
    assert "Node didn't have enough resource: cpu, requested: 1000000, used: " in message


def test_a_critical_pod_takes_the_place_of_another(cluster: Cluster, node: JoinedNode) -> None:
    """node 9."""
    cores = int(cluster.get(f"/api/v1/nodes/{NAME}")["status"]["capacity"]["cpu"])
    start(cluster, "filler", a_pod("filler", spec=HERE, container=cpu(cores * 1000 - 500)))
    critical = HERE + "  priorityClassName: system-node-critical\n"
    cluster.apply(a_pod("critical", spec=critical, container=cpu(1000)))
    eventually(lambda: ready(cluster, "critical"), within=60)
    assert refused(cluster, "filler") == ("Preempting", "Preempted in order to admit critical pod")
    eventually(lambda: ("Warning", "Preempting") in told_of(cluster, "filler"), within=60)


def refused(cluster: Cluster, name: str) -> tuple[str, str]:
    def failed() -> Any:
        status = cluster.pod(name)["status"]
        return status if status["phase"] == "Failed" else None

    status = eventually(failed, within=60)
    return status["reason"], status["message"]


def told_of(cluster: Cluster, name: str) -> set[tuple[str, str]]:
    events = cluster.get(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}")["items"]
    return {(event["type"], event["reason"]) for event in events}
