"""The v1.Node as people and tools read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from services.status.core.conditions import judge
from services.status.core.model import NodeMemory, NodeSettings, Observation
from services.status.core.node import Node, allocatable, build_node, capacity, images, same_but_heartbeat
from shared.contracts.status import NodeImage, RuntimeReport
from tests.support.node_observations import DISK, FINE, MI, SETTINGS

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "api"
KI = 1024
T0 = 1_764_547_200.0
RUNTIME = RuntimeReport(
    v=1,
    node="peer",
    ts=T0,
    healthy=True,
    relisted_at=T0,
    engine_version="20.10.24+dfsg1",
    images=[
        NodeImage(names=["registry.k8s.io/pause:3.10"], size=682696),
        NodeImage(names=["entry:1"], size=1985688),
        NodeImage(names=["busybox:1.36"], size=1985688),
    ],
)


def node(
    *,
    seen: Observation = FINE,
    settings: NodeSettings = SETTINGS,
    runtime: RuntimeReport | None = RUNTIME,
    now: float = T0,
) -> Node:
    conditions = judge(settings.name, NodeMemory(created_at=T0), set(), [], now).conditions
    return build_node(settings, seen, runtime, conditions, T0)


def as_json(one: Node) -> Any:
    return json.loads(msgspec.json.encode(one))


def test_the_node_has_the_keys_of_a_kubernetes_node_in_its_order() -> None:
    body = as_json(node(seen=replace(FINE, swap_total=MI)))
    assert list(body) == ["kind", "apiVersion", "metadata", "spec", "status"]
    assert list(body["metadata"]) == ["name", "creationTimestamp", "labels"]
    assert list(body["status"]) == [
        "capacity",
        "allocatable",
        "conditions",
        "addresses",
        "daemonEndpoints",
        "nodeInfo",
        "images",
    ]
    assert list(body["status"]["nodeInfo"]) == [
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
        "swap",
    ]
    assert list(body["status"]["conditions"][0]) == [
        "type",
        "status",
        "lastHeartbeatTime",
        "lastTransitionTime",
        "reason",
        "message",
    ]


def test_the_node_is_the_recorded_kubelets_but_for_the_listed_differences() -> None:
    """Differences: metadata that an API server adds, taints and the attach-detach annotation of a joined node,
    versions; kubeProxyVersion, which the newest Kubernetes leaves empty."""
    recorded = json.loads((GOLDEN / "node.json").read_text())
    settings = replace(SETTINGS, max_pods=250, eviction_hard={"memory.available": "100Mi"})
    storage = replace(DISK, capacity=264212084 * KI)
    seen = replace(
        FINE,
        memory_total=24684084 * KI,
        nodefs=storage,
        huge_pages={2 * MI: 0, 1024 * MI: 0},
        system=replace(FINE.system, kernel_version="6.18.44-fc-v669"),
    )
    body = as_json(node(seen=seen, settings=settings))
    ours, theirs = body["status"], recorded["status"]
    for part in ("capacity", "allocatable", "addresses", "daemonEndpoints", "images"):
        assert ours[part] == theirs[part], part
    assert body["metadata"]["labels"] == recorded["metadata"]["labels"]
    skipped = {"lastHeartbeatTime", "lastTransitionTime"}
    assert [_without(c, skipped) for c in ours["conditions"]] == [_without(c, skipped) for c in theirs["conditions"]]
    versions = {"kubeletVersion", "kubeProxyVersion"}
    assert _without(ours["nodeInfo"], versions) == _without(theirs["nodeInfo"], versions)
    assert ours["nodeInfo"]["kubeletVersion"] == "v1.36.0+podbus.0.1.0"


@pytest.mark.parametrize(
    ("resource", "changed", "expected"),
    [
        ("cpu", {}, "2"),
        ("cpu", {"kube_reserved": {"cpu": "100m"}, "system_reserved": {"cpu": "250m"}}, "1650m"),
        ("cpu", {"kube_reserved": {"cpu": "3"}}, "0"),
        ("memory", {}, "1000Mi"),
        (
            "memory",
            {
                "kube_reserved": {"memory": "200Mi"},
                "system_reserved": {"memory": "100Mi"},
                "eviction_hard": {"memory.available": "100Mi"},
            },
            "600Mi",
        ),
        ("memory", {"system_reserved": {"memory": "2Gi"}}, "0"),
        ("memory", {"eviction_hard": {"memory.available": "10%"}}, "900Mi"),
        ("ephemeral-storage", {"eviction_hard": {"nodefs.available": "10%"}}, "900Mi"),
        ("ephemeral-storage", {"system_reserved": {"ephemeral-storage": "1Mi"}}, "999Mi"),
        ("pods", {"pods_per_core": 10}, "20"),
        ("pods", {"pods_per_core": 100}, "110"),
    ],
)
def test_allocatable_is_capacity_without_what_is_reserved(
    resource: str, changed: dict[str, Any], expected: str
) -> None:
    """Node case 13 among them: 200Mi, 100Mi and 100Mi leave exactly 400Mi less."""
    assert str(allocatable(replace(SETTINGS, **changed), FINE)[resource]) == expected


def test_memory_in_huge_pages_is_not_for_everybody() -> None:
    seen = replace(FINE, huge_pages={2 * MI: 300 * MI, 1024 * MI: 0})
    has = {name: str(value) for name, value in capacity(SETTINGS, seen).items()}
    assert (has["hugepages-2Mi"], has["hugepages-1Gi"], has["memory"]) == ("300Mi", "0", "1000Mi")
    assert str(allocatable(SETTINGS, seen)["memory"]) == "700Mi"


def test_what_cannot_be_read_is_left_out_and_not_zero() -> None:
    seen = replace(FINE, memory_total=None, nodefs=None)
    assert capacity(SETTINGS, seen).keys() == allocatable(SETTINGS, seen).keys() == {"cpu", "pods"}


def test_images_are_told_largest_first_fifty_with_five_names_each() -> None:
    many = [NodeImage(names=[f"{n}:{tag}" for tag in range(7)], size=n) for n in range(60)]
    told = images(many, 50)
    assert [image.size_bytes for image in told] == list(range(59, 9, -1))
    assert told[0].names == [f"59:{tag}" for tag in range(5)]


def test_without_a_report_there_is_no_runtime_version_and_no_image() -> None:
    status = as_json(node(runtime=None))["status"]
    assert status["nodeInfo"]["containerRuntimeVersion"] == ""
    assert "images" not in status and "swap" not in status["nodeInfo"]


def test_a_heartbeat_is_no_change_and_a_flip_is_one() -> None:
    before = node()
    memory = judge("peer", NodeMemory(created_at=T0), set(), [], T0).memory
    later = judge("peer", memory, set(), [], T0 + 10).conditions
    assert same_but_heartbeat(before, build_node(SETTINGS, FINE, RUNTIME, later, T0))
    flipped = judge("peer", memory, set(), ["down"], T0 + 10).conditions
    assert not same_but_heartbeat(before, build_node(SETTINGS, FINE, RUNTIME, flipped, T0))
    assert not same_but_heartbeat(before, node(seen=replace(FINE, address="192.0.2.3")))


def _without(one: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key not in keys}
