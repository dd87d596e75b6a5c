"""However a pod's status differs from what the API server has: one patch makes them agree, and only forward."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from services.status.core.pod_patch import (
    RemoteMeta,
    RemotePod,
    is_backwards,
    may_be_deleted,
    pod_status_patch,
)
from shared.contracts.registry import POD_REPORT
from shared.contracts.status import PodReport
from shared.kube.pod_conditions import NODE_CONDITIONS
from shared.kube.status import PodCondition, PodIP, PodStatus
from tests.support.merge_patch import merged

REPORT = POD_REPORT.example
TIMES = ("2025-12-01T00:00:02Z", "2025-12-01T00:05:00Z")

conditions = st.builds(
    lambda status, reason, message, at: {"status": status, "reason": reason, "message": message, "at": at},
    st.sampled_from(["True", "False"]),
    st.sampled_from(["", "ContainersNotReady"]),
    st.sampled_from(["", "containers with unready status: [web]"]),
    st.sampled_from(TIMES),
)


@st.composite
def reports(draw: st.DrawFn) -> PodReport:
    kinds = draw(st.sets(st.sampled_from(["Ready", "Initialized", "PodScheduled", "ContainersReady"])))
    told = []
    for kind in sorted(kinds):
        one = draw(conditions)
        told.append(
            PodCondition(
                type=kind,
                status=one["status"],
                reason=one["reason"],
                message=one["message"],
                last_probe_time=None,
                last_transition_time=one["at"],
            )
        )
    ips = draw(st.lists(st.sampled_from(["172.17.0.2", "172.17.0.3"]), max_size=2, unique=True))
    status = PodStatus(
        phase=draw(st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])),
        conditions=told,
        reason=draw(st.sampled_from(["", "Evicted"])),
        message=draw(st.sampled_from(["", "why"])),
        pod_ip=ips[0] if ips else "",
        pod_ips=[PodIP(ip=ip) for ip in ips],
        start_time=draw(st.sampled_from(TIMES)),
        container_statuses=draw(st.sampled_from([REPORT.status.container_statuses, []])),
        qos_class="BestEffort",
    )
    return replace(REPORT, status=status, containers=draw(st.sampled_from([REPORT.containers, []])))


@st.composite
def remotes(draw: st.DrawFn) -> RemotePod:
    """What an earlier report made of it, with fields lost and others' conditions in it."""
    status: dict[str, Any] = msgspec.to_builtins(draw(reports()).status)
    for name in draw(st.sets(st.sampled_from(sorted(status)))):
        del status[name]
    if draw(st.booleans()):
        foreign = {"type": "example.com/gate", "status": "False", "reason": "Waiting"}
        status["conditions"] = [*status.get("conditions", []), foreign]
    return RemotePod(metadata=RemoteMeta(uid="u"), status=status)


def patched(remote: RemotePod, report: PodReport) -> RemotePod:
    patch = pod_status_patch(remote, report)
    if patch is None:
        return remote
    assert patch["metadata"] == {"uid": "u"}
    return RemotePod(metadata=remote.metadata, status=merged(remote.status, patch["status"]))


def by_type(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["type"]: one for one in status.get("conditions", [])}


@given(remotes(), reports())
def test_after_one_patch_both_agree_and_nothing_more_is_sent(remote: RemotePod, report: PodReport) -> None:
    after = patched(remote, report)
    assert pod_status_patch(after, report) is None
    ours = msgspec.to_builtins(report.status)
    for name in ("reason", "message", "podIP", "podIPs", "containerStatuses"):
        if name in ours or name not in ("podIPs",):
            assert after.status.get(name) == ours.get(name)
    for kind, one in by_type(ours).items():
        told = by_type(after.status)[kind]
        assert (told["status"], told.get("reason"), told.get("message")) == (
            one["status"],
            one.get("reason"),
            one.get("message"),
        )


@given(remotes(), reports())
def test_conditions_of_others_stay_and_stale_ones_of_ours_go(remote: RemotePod, report: PodReport) -> None:
    before, after = by_type(remote.status), by_type(patched(remote, report).status)
    ours = {one.type for one in report.status.conditions}
    assert {k: v for k, v in after.items() if k not in NODE_CONDITIONS} == {
        k: v for k, v in before.items() if k not in NODE_CONDITIONS
    }
    assert after.keys() & NODE_CONDITIONS == ours


@given(remotes(), reports())
def test_the_start_and_the_time_of_an_unchanged_condition_stay(remote: RemotePod, report: PodReport) -> None:
    after = patched(remote, report)
    assert after.status["startTime"] == remote.status.get("startTime", report.status.start_time)
    before = by_type(remote.status)
    for kind, one in by_type(after.status).items():
        if kind in before and before[kind]["status"] == one["status"]:
            assert one.get("lastTransitionTime") == before[kind].get("lastTransitionTime")


@given(remotes(), reports())
def test_a_final_phase_waits_for_the_last_container(remote: RemotePod, report: PodReport) -> None:
    final = ("Succeeded", "Failed")
    after = patched(remote, report)
    if report.containers and remote.status.get("phase") not in final:
        assert after.status["phase"] not in final
    if is_backwards(remote, report):
        assert remote.status["phase"] in final and report.status.phase not in final


def test_a_condition_of_an_eviction_is_kept() -> None:
    """Set by who evicts, and not by the node alone."""
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    remote = RemotePod(metadata=RemoteMeta(uid="u"), status={"conditions": [disrupted]})
    assert by_type(patched(remote, REPORT).status)["DisruptionTarget"] == disrupted


def test_a_pod_is_let_go_when_nothing_of_it_is_left() -> None:
    ended = replace(REPORT, state="finished", containers=[])
    assert may_be_deleted(ended)
    assert not may_be_deleted(replace(ended, state="terminated"))
    assert not may_be_deleted(replace(ended, containers=REPORT.containers))
