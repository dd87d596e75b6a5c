"""Shares, quota, QoS, oom_score_adj, cgroup parents (lifecycle 7.6)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from services.podworker.core import resources
from services.podworker.core.demand import demand_of
from services.podworker.core.pod_limits import pod_limits
from shared.kube.pod import Container, Pod
from tests.support.builders import UID, a_container, a_node, a_pod

UUID = "12345678-1234-1234-1234-123456789abc"
GIB = 2**30


def asking(
    requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, name: str = "c"
) -> dict[str, Any]:
    return a_container(name, resources={"requests": requests or {}, "limits": limits or {}})


def the_container(requests: dict[str, Any], limits: dict[str, Any]) -> Container:
    return a_pod(asking(requests, limits)).spec.containers[0]


@pytest.mark.parametrize(
    ("requests", "limits", "shares", "quota"),
    [
        ({}, {}, 2, 0),
        ({"cpu": "250m"}, {}, 256, 0),
        ({"cpu": "100m"}, {"cpu": "500m"}, 102, 50_000),
        ({}, {"cpu": "500m"}, 512, 50_000),
        ({"cpu": "1m"}, {"cpu": "1m"}, 2, 1000),
        ({"cpu": 2}, {"cpu": 2}, 2048, 200_000),
        ({"cpu": "0"}, {"cpu": "1"}, 2, 100_000),
        ({"cpu": "1000"}, {}, 262_144, 0),
    ],
)
def test_cpu_becomes_shares_and_a_quota(
    requests: dict[str, Any], limits: dict[str, Any], shares: int, quota: int
) -> None:
    """M01"""
    container = the_container(requests, limits)
    assert (resources.cpu_shares(container), resources.cpu_quota(container)) == (shares, quota)


def test_the_memory_limit_is_in_bytes() -> None:
    assert resources.memory_limit(the_container({}, {"memory": "64Mi"})) == 64 * 2**20
    assert resources.memory_limit(the_container({}, {})) == 0


FULL = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([asking()], "BestEffort"),
        ([asking({"cpu": "0"}, {"memory": 0})], "BestEffort"),
        ([asking({"ephemeral-storage": "1Gi"})], "BestEffort"),
        ([asking(FULL, FULL)], "Guaranteed"),
        ([asking({"cpu": "1000m", "memory": "1024Mi"}, FULL)], "Guaranteed"),
        ([asking(FULL, FULL), asking(name="d")], "Burstable"),
        ([asking({"cpu": "500m", "memory": "1Gi"}, FULL)], "Burstable"),
        ([asking({"cpu": "1"}, {"cpu": "1"})], "Burstable"),
        ([asking({"memory": "1Mi"})], "Burstable"),
    ],
)
def test_the_qos_class_follows_requests_and_limits(containers: list[dict[str, Any]], expected: str) -> None:
    assert resources.qos_class(a_pod(*containers)) == expected


def score(pod: Pod, **node: Any) -> int:
    return resources.oom_score_adj(
        pod, pod.spec.containers[0], a_node(allow_negative_oom=True, memory_bytes=8 * GIB, **node)
    )


def test_oom_score_adj_follows_the_qos_class() -> None:
    """M03"""
    assert score(a_pod()) == 1000
    assert score(a_pod(asking(FULL, FULL))) == -997
    assert score(a_pod(priorityClassName="system-node-critical")) == -997
    assert score(a_pod(asking({"memory": "4Gi"}))) == 500
    assert score(a_pod(asking({"memory": "1Ki"}))) == 999
    assert score(a_pod(asking({"memory": "8Gi"}))) == 3
    assert score(a_pod(asking({"cpu": "1"}))) == 999


def test_a_negative_oom_score_is_clamped_where_the_node_refuses_it() -> None:
    pod = a_pod(asking(FULL, FULL))
    assert resources.oom_score_adj(pod, pod.spec.containers[0], a_node(allow_negative_oom=False)) == 0


@pytest.mark.parametrize(
    ("driver", "root", "containers", "expected"),
    [
        ("cgroupfs", "/", [asking()], f"/kubepods/besteffort/pod{UID}"),
        ("cgroupfs", "/", [asking({"cpu": "1"})], f"/kubepods/burstable/pod{UID}"),
        ("cgroupfs", "/", [asking(FULL, FULL)], f"/kubepods/pod{UID}"),
        ("cgroupfs", "/podbus", [asking()], f"/podbus/kubepods/besteffort/pod{UID}"),
        ("systemd", "/", [asking()], f"kubepods-besteffort-pod{UID}.slice"),
        ("systemd", "/", [asking(FULL, FULL)], f"kubepods-pod{UID}.slice"),
        ("systemd", "/podbus.slice", [asking()], f"podbus-kubepods-besteffort-pod{UID}.slice"),
    ],
)
def test_the_cgroup_parent_is_named_for_the_driver(
    driver: str, root: str, containers: list[dict[str, Any]], expected: str
) -> None:
    node = a_node(cgroup_driver=driver, cgroup_root=root)
    assert resources.cgroup_parent(a_pod(*containers), node) == expected


def test_a_slice_has_no_dashes_of_the_uid() -> None:
    pod = a_pod()
    with_dashes = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=UUID))
    parent = resources.cgroup_parent(with_dashes, a_node(cgroup_driver="systemd"))
    assert parent == f"kubepods-besteffort-pod{UUID.replace('-', '_')}.slice"


def with_init(*init: tuple[str, str], main: str = "100m") -> Pod:
    """Init containers as (policy, cpu), "Always" = a sidecar."""
    made = [
        {**asking({"cpu": cpu, "memory": "1Mi"}, {"cpu": cpu, "memory": "1Mi"}, f"i{i}"), "restartPolicy": policy}
        for i, (policy, cpu) in enumerate(init)
    ]
    return a_pod(asking({"cpu": main, "memory": "1Mi"}, {"cpu": main, "memory": "1Mi"}, "main"), initContainers=made)


@pytest.mark.parametrize(
    ("init", "milli"),
    [
        ([], 100),
        ([("", "50m")], 100),
        ([("", "300m"), ("", "200m")], 300),
        ([("Always", "50m")], 150),
        ([("Always", "50m"), ("", "300m")], 350),
        ([("", "300m"), ("Always", "50m")], 300),
        ([("Always", "50m"), ("Always", "60m")], 210),
    ],
)
def test_a_pod_needs_what_runs_at_once(init: list[tuple[str, str]], milli: int) -> None:
    pod = with_init(*init)
    assert demand_of(pod).cpu_milli == milli
    limits = pod_limits(pod)
    assert (limits.cpu_quota, limits.cpu_shares) == (milli * 100, milli * 1024 // 1000)


def test_an_init_container_without_a_limit_leaves_the_pod_without_one() -> None:
    limits = pod_limits(a_pod(asking({}, FULL), initContainers=[asking(name="i")]))
    assert (limits.cpu_quota, limits.memory) == (0, 0)


def test_a_sidecar_is_killed_no_earlier_than_the_regular_containers() -> None:
    side = {**asking({"memory": "1Mi"}, name="s"), "restartPolicy": "Always"}
    plain = asking({"memory": "1Mi"}, name="i")
    pod = a_pod(asking({"memory": "2Gi"}, name="a"), asking({"memory": "4Gi"}, name="b"), initContainers=[plain, side])
    node = a_node(memory_bytes=8 * GIB)
    scores = {c.name: resources.oom_score_adj(pod, c, node) for c in (*pod.spec.init_containers, *pod.spec.containers)}
    assert scores == {"i": 999, "s": 750, "a": 750, "b": 500}
