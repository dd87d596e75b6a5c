"""However the two sides differ: one patch makes them agree, and nobody else's part is touched."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from services.status.core.conditions import judge
from services.status.core.model import PRESSURES, NodeMemory, Observation
from services.status.core.node import NodeStatus, build_node
from services.status.core.node_patch import remembered, status_patch
from services.status.core.remote_node import OwnerMetadata, RemoteNode
from shared.contracts.status import NodeImage, RuntimeReport
from shared.kube.times import rfc3339
from tests.support.merge_patch import merged_node
from tests.support.node_observations import FINE, MI, SETTINGS

T0 = 1_764_547_200.0
LATER = T0 + 1000.0

observations = st.builds(
    lambda cores, address, memory, swap, pages: replace(
        FINE, cores=cores, address=address, memory_total=memory, swap_total=swap, huge_pages=pages
    ),
    st.integers(1, 4),
    st.sampled_from(["192.0.2.2", "192.0.2.3"]),
    st.sampled_from([None, 1000 * MI, 2000 * MI]),
    st.sampled_from([0, MI]),
    st.dictionaries(st.sampled_from([2 * MI, 1024 * MI]), st.sampled_from([0, 2048 * MI])),
)
image_lists = st.lists(st.builds(NodeImage, names=st.just(["a:1"]), size=st.integers(1, 3)), max_size=3)


@st.composite
def statuses(draw: st.DrawFn) -> NodeStatus:
    seen: Observation = draw(observations)
    runtime = RuntimeReport(
        v=1, node="peer", ts=T0, healthy=True, relisted_at=T0, engine_version="20.10.24", images=draw(image_lists)
    )
    at = draw(st.sampled_from([T0, T0 + 100]))
    problems = draw(st.sampled_from([[], ["down"]]))
    pressures = draw(st.sets(st.sampled_from(PRESSURES)))
    conditions = judge("peer", NodeMemory(created_at=T0), pressures, problems, at).conditions
    return build_node(SETTINGS, seen, runtime, conditions, T0).status


@st.composite
def remotes(draw: st.DrawFn) -> RemoteNode:
    """A Node that an earlier start told of, with fields lost and others' things in it."""
    status: dict[str, Any] = msgspec.to_builtins(draw(statuses()))
    for name in draw(st.sets(st.sampled_from(sorted(status)))):
        del status[name]
    if draw(st.booleans()):
        foreign = {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"}
        status["conditions"] = [*status.get("conditions", []), foreign]
    if draw(st.booleans()):
        status["capacity"] = {**status.get("capacity", {}), "example.com/dongle": "4"}
    status["volumesInUse"] = ["somebody's"]
    for condition in status.get("conditions", []):
        if draw(st.booleans()):
            condition |= {"status": "Unknown", "lastTransitionTime": rfc3339(T0 + 50)}
    return RemoteNode(metadata=OwnerMetadata(name="peer"), status=status)


@given(remote=remotes(), ours=statuses())
def test_after_one_patch_there_is_nothing_to_send(remote: RemoteNode, ours: NodeStatus) -> None:
    patch = status_patch(remote, ours, told=None, now=LATER, is_due=True)
    assert patch is not None
    answer = merged_node(remote, patch.body)
    assert status_patch(answer, ours, told=None, now=LATER + 10, is_due=False) is None
    assert status_patch(answer, ours, told=remembered(answer, ours), now=LATER + 10, is_due=False) is None


@given(remote=remotes(), ours=statuses())
def test_what_is_told_is_what_is_so(remote: RemoteNode, ours: NodeStatus) -> None:
    patch = status_patch(remote, ours, told=None, now=LATER, is_due=True)
    assert patch is not None
    status = merged_node(remote, patch.body).status
    mine = msgspec.to_builtins(ours)
    assert status["addresses"] == mine["addresses"] and status.get("images", []) == mine.get("images", [])
    assert status["capacity"].items() >= mine["capacity"].items()
    assert status["allocatable"].items() >= mine["allocatable"].items()
    assert {"kubeProxyVersion": "", **status["nodeInfo"]} == mine["nodeInfo"]
    told = {condition["type"]: condition for condition in status["conditions"]}
    for condition in mine["conditions"]:
        assert {**condition, "lastTransitionTime": ""} == {**told[condition["type"]], "lastTransitionTime": ""}


@given(remote=remotes(), ours=statuses())
def test_the_parts_of_others_are_left_alone(remote: RemoteNode, ours: NodeStatus) -> None:
    patch = status_patch(remote, ours, told=None, now=LATER, is_due=True)
    assert patch is not None and patch.body.keys() == {"status"}
    status = merged_node(remote, patch.body).status
    assert status["volumesInUse"] == ["somebody's"]
    assert status["capacity"].get("example.com/dongle") == remote.status.get("capacity", {}).get("example.com/dongle")
    foreign = [c for c in remote.status.get("conditions", []) if c["type"] == "NetworkUnavailable"]
    assert [c for c in status["conditions"] if c["type"] == "NetworkUnavailable"] == foreign


@given(remote=remotes(), ours=statuses())
def test_a_transition_time_moves_only_with_the_status(remote: RemoteNode, ours: NodeStatus) -> None:
    patch = status_patch(remote, ours, told=None, now=LATER, is_due=True)
    assert patch is not None
    before = {c["type"]: c for c in remote.status.get("conditions", [])}
    for condition in patch.body["status"]["conditions"]:
        if (known := before.get(condition["type"])) is None:
            continue
        kept = condition["lastTransitionTime"] == known["lastTransitionTime"]
        assert kept == (known["status"] == condition["status"]), condition["type"]
