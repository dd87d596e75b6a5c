"""The first Node object, and what is corrected of one that was there before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from services.status.core.conditions import judge, schedulable_event
from services.status.core.model import NodeMemory
from services.status.core.node import Node, build_node, with_remote
from services.status.core.registration import ATTACH_DETACH, Joining, correction, first_node
from services.status.core.remote_node import OwnerMetadata, RemoteNode, parse_remote_node
from tests.support.node_observations import FINE, SETTINGS

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "api"
T0 = 1_764_547_200.0
TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def node(name: str = "peer") -> Node:
    conditions = judge(name, NodeMemory(created_at=T0), set(), [], T0).conditions
    return build_node(replace(SETTINGS, name=name), FINE, None, conditions, T0)


def remote(labels: dict[str, str], annotations: dict[str, str] | None = None) -> RemoteNode:
    told = {ATTACH_DETACH: "true"} if annotations is None else annotations
    return RemoteNode(metadata=OwnerMetadata(name="peer", uid="u1", labels=labels, annotations=told))


def test_the_first_node_has_the_recorded_kubelets_metadata() -> None:
    """Differences: none but what the API server adds."""
    recorded = json.loads((GOLDEN / "node.json").read_text())
    body = first_node(node(), Joining())
    for key in ("labels", "annotations", "name"):
        assert body["metadata"][key] == recorded["metadata"][key]
    assert body["spec"] == {} and body["status"]["conditions"]
    assert (body["kind"], body["apiVersion"]) == ("Node", "v1")


def test_a_fresh_node_has_the_configured_taints_labels_and_provider() -> None:
    """Node case 12."""
    joining = Joining(taints=(TAINT,), labels={"disk": "ssd"}, provider_id="p://1")
    body = first_node(node(), joining)
    assert body["spec"] == {"taints": [TAINT], "providerID": "p://1"}
    assert body["metadata"]["labels"]["disk"] == "ssd"
    assert body["metadata"]["labels"]["kubernetes.io/hostname"] == "peer"


def test_an_existing_node_gets_no_taint_and_no_further_label() -> None:
    """Node case 12: those are its administrator's."""
    labels = first_node(node(), Joining())["metadata"]["labels"]
    joining = Joining(taints=(TAINT,), labels={"disk": "ssd"})
    assert correction(remote({**labels, "theirs": "x"}), node(), joining) is None


def test_a_wrong_label_of_the_machine_is_corrected() -> None:
    """Node case 11."""
    labels = {**first_node(node(), Joining())["metadata"]["labels"], "kubernetes.io/arch": "wrong"}
    assert correction(remote(labels), node(), Joining()) == {"metadata": {"labels": {"kubernetes.io/arch": "amd64"}}}


@pytest.mark.parametrize("value", ["eu-1", ""])
def test_a_configured_zone_is_corrected_and_an_empty_one_removed(value: str) -> None:
    labels = {**first_node(node(), Joining())["metadata"]["labels"], "topology.kubernetes.io/zone": "us-2"}
    joining = Joining(labels={"topology.kubernetes.io/zone": value})
    patch = {"metadata": {"labels": {"topology.kubernetes.io/zone": value or None}}}
    assert correction(remote(labels), node(), joining) == patch


def test_a_missing_annotation_is_added() -> None:
    labels = first_node(node(), Joining())["metadata"]["labels"]
    patch = {"metadata": {"annotations": {ATTACH_DETACH: "true"}}}
    assert correction(remote(labels, {"theirs": "x"}), node(), Joining()) == patch


def test_the_recorded_kubelets_node_needs_no_correction() -> None:
    assert correction(parse_remote_node((GOLDEN / "node.json").read_bytes()), node(), Joining()) is None


def test_the_bus_gets_to_know_what_only_the_api_server_knows() -> None:
    recorded = parse_remote_node((GOLDEN / "node.json").read_bytes())
    told = with_remote(node(), recorded)
    assert told.metadata.uid == "cb633a0e-f84c-45f1-8be9-467da35b791e"
    assert told.spec["taints"] == [{"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"}]
    assert told.status == node().status


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (None, True, None),
        (False, False, None),
        (False, True, "NodeNotSchedulable"),
        (True, False, "NodeSchedulable"),
    ],
)
def test_a_cordon_is_told_when_it_changes(before: bool | None, after: bool, reason: str | None) -> None:
    def a_node(cordoned: bool) -> RemoteNode:
        return RemoteNode(metadata=OwnerMetadata(), spec={"unschedulable": True} if cordoned else {})

    event = schedulable_event("peer", None if before is None else a_node(before), a_node(after))
    assert (event.reason if event else None) == reason
    assert event is None or event.message == f"Node peer status is now: {reason}"


def test_a_node_tells_its_range_of_addresses_in_the_old_and_the_new_form() -> None:
    metadata = OwnerMetadata()
    assert RemoteNode(metadata=metadata, spec={"podCIDR": "10.1.0.0/24"}).pod_cidrs == ["10.1.0.0/24"]
    both = {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00::/64"]}
    assert RemoteNode(metadata=metadata, spec=both).pod_cidrs == ["10.1.0.0/24", "fd00::/64"]
    assert RemoteNode(metadata=metadata).pod_cidrs == []
