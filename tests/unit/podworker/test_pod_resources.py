"""Resources of a pod as a whole, overhead, and resources beside cpu and memory."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.core.container_config import container_config
from services.podworker.core.demand import demand_of
from services.podworker.core.downward import resource_value
from services.podworker.core.pod_limits import PodLimits, pod_limits
from services.podworker.core.pod_resources import pod_request
from services.podworker.core.resources import oom_score_adj, qos_class
from shared.kube.pod import Pod
from shared.kube.volumes import ResourceFieldSelector
from tests.support.builders import a_container, a_node, a_pod

MIB = 2**20


def asking(requests: dict[str, Any], limits: dict[str, Any], name: str = "c") -> dict[str, Any]:
    return a_container(name, resources={"requests": requests, "limits": limits})


def whole(requests: dict[str, Any], limits: dict[str, Any], *containers: dict[str, Any], **spec: Any) -> Pod:
    return a_pod(*(containers or (a_container(),)), resources={"requests": requests, "limits": limits}, **spec)


def test_the_pods_own_limits_hold_for_containers_without() -> None:
    pod = whole({}, {"cpu": "1", "memory": "64Mi"}, a_container("a"), asking({}, {"memory": "16Mi"}, "b"))
    made = [container_config(pod, c, a_node(), 0, sandbox_id="s", source="file") for c in pod.spec.containers]
    assert [(c.memory, c.cpu_quota) for c in made] == [(64 * MIB, 100_000), (16 * MIB, 100_000)]
    ref = ResourceFieldSelector(resource="limits.memory", divisor="1Mi")
    assert [resource_value(pod, c, ref, a_node()) for c in pod.spec.containers] == ["64", "16"]


@pytest.mark.parametrize(
    ("requests", "limits", "qos"),
    [
        ({"cpu": "1", "memory": "1Mi"}, {"cpu": "1", "memory": "1Mi"}, "Guaranteed"),
        ({}, {"cpu": "1", "memory": "1Mi"}, "Guaranteed"),
        ({"cpu": "500m"}, {"cpu": "1", "memory": "1Mi"}, "Burstable"),
        ({"cpu": "500m"}, {}, "Burstable"),
        ({}, {}, "BestEffort"),
    ],
)
def test_the_pods_own_resources_decide_its_class(requests: dict[str, Any], limits: dict[str, Any], qos: str) -> None:
    assert qos_class(whole(requests, limits)) == qos


def test_the_pods_own_resources_are_what_it_takes_and_may_have() -> None:
    pod = whole({"cpu": "500m", "memory": "32Mi"}, {"cpu": "1"}, asking({"cpu": "100m"}, {}))
    demand = demand_of(pod)
    assert (demand.cpu_milli, demand.memory_bytes) == (500, 32 * MIB)
    assert pod_limits(pod) == PodLimits(cpu_shares=512, cpu_quota=100_000)
    only_limit = whole({}, {"cpu": "1"}, asking({"cpu": "100m"}, {}))
    assert (pod_request(only_limit, "cpu"), pod_request(whole({}, {"cpu": "1"}), "cpu")) == (100, 1000)


def test_what_the_pod_requests_beyond_its_containers_is_shared_by_them() -> None:
    pod = whole({"memory": "4Gi"}, {}, asking({"memory": "2Gi"}, {}, "a"), a_container("b"))
    node = a_node(memory_bytes=8 * 2**30)
    assert [oom_score_adj(pod, c, node) for c in pod.spec.containers] == [1000 - 375, 1000 - 125]


def test_overhead_counts_for_the_pod_and_for_no_container() -> None:
    full = {"cpu": "100m", "memory": "16Mi"}
    pod = a_pod(asking(full, full), overhead={"cpu": "50m", "memory": "4Mi"})
    demand = demand_of(pod)
    assert (demand.cpu_milli, demand.memory_bytes) == (150, 20 * MIB)
    assert pod_limits(pod) == PodLimits(cpu_shares=153, cpu_quota=15_000, memory=20 * MIB)
    made = container_config(pod, pod.spec.containers[0], a_node(), 0, sandbox_id="s", source="file")
    assert (made.memory, made.cpu_quota) == (16 * MIB, 10_000)
    assert qos_class(pod) == "Guaranteed"


def test_other_resources_are_what_it_takes_too() -> None:
    pages = {"hugepages-2Mi": "4Mi", "cpu": "1m"}
    pod = a_pod(asking({**pages, "ephemeral-storage": "1Gi"}, pages, "a"), asking(pages, pages, "b"))
    assert demand_of(pod).amounts == {"ephemeral-storage": 2**30, "hugepages-2Mi": 8 * MIB}
    assert pod_limits(pod, pids=7).huge_pages == {"2Mi": 8 * MIB}
    assert pod_limits(pod, pids=7).pids == 7
    assert pod_limits(pod, pids=-1).pids == 0
