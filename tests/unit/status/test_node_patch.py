"""What the API server is told of the node's status, and when nothing is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from services.status.core.conditions import judge
from services.status.core.model import NodeMemory
from services.status.core.node import ContainerImage, NodeAddress, NodeStatus, build_node
from services.status.core.node_patch import remembered, status_patch
from services.status.core.remote_node import RemoteNode, parse_remote_node
from shared.contracts.status import NodeImage, RuntimeReport
from shared.kube.times import rfc3339
from tests.support.merge_patch import merged_node
from tests.support.node_observations import FINE, MI, SETTINGS

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "api"
T0 = 1_764_547_200.0
RUNTIME = RuntimeReport(
    v=1,
    node="peer",
    ts=T0,
    healthy=True,
    relisted_at=T0,
    engine_version="20.10.24",
    images=[NodeImage(names=["busybox:1.36"], size=1985688)],
)


def status(
    *, problems: list[str] | None = None, now: float = T0, runtime: RuntimeReport | None = RUNTIME
) -> NodeStatus:
    conditions = judge("peer", NodeMemory(created_at=T0), set(), problems or [], now).conditions
    return build_node(SETTINGS, FINE, runtime, conditions, T0).status


def as_remote(ours: NodeStatus, **changed: Any) -> RemoteNode:
    body = {"metadata": {"name": "peer", "uid": "u1"}, "status": {**msgspec.to_builtins(ours), **changed}}
    return parse_remote_node(json.dumps(body).encode())


def after(remote: RemoteNode, ours: NodeStatus, now: float) -> RemoteNode:
    """The Node once it was told."""
    patch = status_patch(remote, ours, told=None, now=now, is_due=True)
    assert patch is not None
    return merged_node(remote, patch.body)


def test_an_equal_status_is_not_sent() -> None:
    """Node case 16: two identical computations produce no PATCH."""
    remote = as_remote(status())
    assert status_patch(remote, status(now=T0 + 600), told=None, now=T0 + 600, is_due=False) is None


def test_a_changed_list_of_images_is_sent_once() -> None:
    """Node case 16: a changed image list produces exactly one."""
    images = [ContainerImage(names=["redis:7"], size_bytes=1)]
    remote, ours = as_remote(status()), replace(status(), images=images)
    patch = status_patch(remote, ours, told=None, now=T0, is_due=False)
    assert patch is not None and list(patch.reasons) == ["images"]
    answer = merged_node(remote, patch.body)
    assert answer.status["images"] == [{"names": ["redis:7"], "sizeBytes": 1}]
    assert status_patch(answer, ours, told=remembered(answer, ours), now=T0 + 10, is_due=False) is None


def test_a_changed_address_leaves_no_old_one() -> None:
    """Node case 18: the list merges by type."""
    remote = as_remote(status())
    ours = replace(
        status(),
        addresses=[
            NodeAddress(type="InternalIP", address="192.0.2.9"),
            NodeAddress(type="Hostname", address="peer"),
        ],
    )
    patch = status_patch(remote, ours, told=None, now=T0, is_due=False)
    assert patch is not None and list(patch.reasons) == ["addresses"]
    assert patch.body["status"]["addresses"][-1] == {"$patch": "replace"}
    assert merged_node(remote, patch.body).status["addresses"] == [
        {"type": "InternalIP", "address": "192.0.2.9"},
        {"type": "Hostname", "address": "peer"},
    ]


def test_a_due_report_sends_the_heartbeats_alone() -> None:
    patch = status_patch(as_remote(status()), status(now=T0 + 300), told=None, now=T0 + 300, is_due=True)
    assert patch is not None and not patch.reasons and list(patch.body["status"]) == ["conditions"]
    assert {c["lastHeartbeatTime"] for c in patch.body["status"]["conditions"]} == {rfc3339(T0 + 300)}
    assert {c["lastTransitionTime"] for c in patch.body["status"]["conditions"]} == {rfc3339(T0)}


def test_a_status_that_did_not_flip_keeps_the_servers_transition_time() -> None:
    """What was remembered here may be lost."""
    remote = as_remote(status(now=T0 - 5000))
    patched = after(remote, status(now=T0), T0)
    assert {c["lastTransitionTime"] for c in patched.status["conditions"]} == {rfc3339(T0 - 5000)}


def test_a_flip_has_the_time_of_the_flip() -> None:
    patched = after(as_remote(status(now=T0 - 5000)), status(problems=["down"], now=T0), T0 + 7)
    ready = patched.status["conditions"][-1]
    assert (ready["type"], ready["status"], ready["lastTransitionTime"]) == ("Ready", "False", rfc3339(T0))


def test_taking_back_an_unknown_of_the_node_controller_is_a_flip_now() -> None:
    lost = [
        {**condition, "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": rfc3339(T0 + 40)}
        for condition in msgspec.to_builtins(status().conditions)
    ]
    patched = after(as_remote(status(), conditions=lost), status(), T0 + 100)
    assert {c["lastTransitionTime"] for c in patched.status["conditions"]} == {rfc3339(T0 + 100)}
    assert patched.status["conditions"][-1]["status"] == "True"


def test_a_condition_of_others_stays() -> None:
    network = {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"}
    remote = as_remote(status(), conditions=[network])
    patched = after(remote, status(), T0)
    assert network in patched.status["conditions"] and len(patched.status["conditions"]) == 5


def test_a_resource_that_an_administrator_advertises_stays_and_pods_may_have_it() -> None:
    mine = msgspec.to_builtins(status())
    remote = as_remote(status(), capacity={**mine["capacity"], "example.com/dongle": "4"})
    patched = after(remote, status(), T0)
    assert patched.status["capacity"]["example.com/dongle"] == "4"
    assert patched.status["allocatable"]["example.com/dongle"] == "4"


def test_huge_pages_of_a_size_that_is_gone_go() -> None:
    mine = msgspec.to_builtins(status())
    remote = as_remote(
        status(),
        capacity={**mine["capacity"], "hugepages-1Gi": "1Gi"},
        allocatable={**mine["allocatable"], "hugepages-1Gi": "1Gi"},
    )
    patched = after(remote, status(), T0)
    assert "hugepages-1Gi" not in patched.status["capacity"] and "hugepages-1Gi" not in patched.status["allocatable"]


def test_another_spelling_of_an_amount_is_no_change() -> None:
    mine = msgspec.to_builtins(status())
    remote = as_remote(status(), capacity={**mine["capacity"], "cpu": "2000m"})
    assert status_patch(remote, status(), told=None, now=T0, is_due=False) is None


def test_what_the_server_does_not_keep_is_not_sent_for_ever() -> None:
    """An older API server drops nodeInfo.swap; a change of anything is sent again."""
    node = build_node(SETTINGS, replace(FINE, swap_total=MI), RUNTIME, status().conditions, T0)
    remote = as_remote(status())
    patch = status_patch(remote, node.status, told=None, now=T0, is_due=False)
    assert patch is not None and list(patch.reasons) == ["nodeInfo"]
    told = remembered(remote, node.status)
    assert status_patch(remote, node.status, told=told, now=T0 + 10, is_due=False) is None
    changed = as_remote(status(), capacity={})
    assert status_patch(changed, node.status, told=told, now=T0 + 10, is_due=False) is not None


def test_before_a_worker_reports_nothing_that_is_known_of_the_engine_is_taken_back() -> None:
    remote = as_remote(status())
    patch = status_patch(remote, status(runtime=None), told=None, now=T0, is_due=True)
    assert patch is not None and not patch.reasons
    patched = merged_node(remote, patch.body)
    assert patched.status["images"] and patched.status["nodeInfo"]["containerRuntimeVersion"] == "docker://20.10.24"


def test_the_recorded_kubelets_node_needs_only_what_a_newer_one_says_otherwise() -> None:
    """Differences: versions; kubeProxyVersion, which the newest Kubernetes leaves empty; this machine's own amounts,
    images and kernel, which the recording has of another."""
    remote = parse_remote_node((GOLDEN / "node.json").read_bytes())
    patch = status_patch(remote, status(), told=None, now=T0, is_due=False)
    assert patch is not None
    assert set(patch.body["status"]["nodeInfo"]) == {
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
    }
    assert set(patch.reasons) == {"allocatable", "capacity", "images", "nodeInfo"}
