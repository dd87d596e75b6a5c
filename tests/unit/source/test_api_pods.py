"""Pods of the API server -> what is published."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from services.source.core.api_pods import ApiListing, deletion_grace, plan_api, refusal
from services.source.core.merge import SourcePlan
from services.source.core.state import SourceObject, SourceState, restored_state, stored_objects

ORIGIN = "/etc/podbus/kubeconfig"


def a_pod(name: str = "web", uid: str = "u1", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": uid,
            "resourceVersion": "7",
            "managedFields": [{"manager": "kubectl"}],
            **metadata,
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "busybox:1.36"}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]},
    }


def plan(*pods: dict[str, Any], before: SourceState | None = None, others: Any = None, now: float = 10.0) -> SourcePlan:
    return plan_api(before or SourceState(), ApiListing(ORIGIN, pods), now, others or {})


def only(found: SourcePlan) -> SourceObject:
    assert len(found.pods) == 1
    return found.pods[0]


def changed(pod: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Another version of it."""
    other = copy.deepcopy(pod)
    other["metadata"]["resourceVersion"] = "8"
    other["spec"] |= spec
    return other


def test_a_pod_keeps_the_uid_and_the_name_that_the_api_server_gave_it() -> None:
    found = only(plan(a_pod()))
    assert (found.uid, found.namespace, found.name) == ("u1", "default", "web")
    assert found.body["metadata"]["annotations"]["kubernetes.io/config.source"] == "api"
    assert "kubernetes.io/config.seen" in found.body["metadata"]["annotations"]


def test_the_servers_bookkeeping_is_not_published() -> None:
    meta = only(plan(a_pod())).body["metadata"]
    assert "managedFields" not in meta and "resourceVersion" not in meta


def test_a_status_that_the_node_wrote_is_no_new_generation() -> None:
    first = plan(a_pod())
    pod = changed(a_pod())
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1"}
    assert only(plan(pod, before=first.state)).gen == only(first).gen


def test_a_readiness_gate_that_another_controller_answers_is_a_new_generation() -> None:
    """T18"""
    first = plan(a_pod())
    pod = changed(a_pod())
    pod["status"]["conditions"].append({"type": "example.com/gate", "status": "True"})
    after = only(plan(pod, before=first.state))
    assert after.gen > only(first).gen
    assert after.body["status"]["conditions"] == [{"type": "example.com/gate", "status": "True"}]


def test_a_pod_that_is_over_in_the_api_says_so() -> None:
    pod = a_pod()
    pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": "low memory"}
    assert only(plan(pod)).body["status"] == {"phase": "Failed", "reason": "Evicted", "message": "low memory"}


def test_a_deletion_is_a_new_generation_with_its_grace() -> None:
    """W09"""
    first = plan(a_pod())
    pod = changed(a_pod(deletionTimestamp="2026-12-01T10:00:00Z", deletionGracePeriodSeconds=4))
    after = only(plan(pod, before=first.state))
    assert after.gen > only(first).gen
    assert deletion_grace(after.body) == 4
    assert deletion_grace(only(first).body) is None


def test_a_pod_that_has_left_a_complete_list_is_gone() -> None:
    before = plan(a_pod(), a_pod("db", "u2"))
    assert [pod.name for pod in plan(a_pod("db", "u2"), before=before.state).pods] == ["db"]


def test_without_a_complete_list_nothing_goes_and_the_error_is_told() -> None:
    before = plan(a_pod())
    after = plan_api(before.state, ApiListing(ORIGIN, error="connection refused"), 20.0, {})
    assert [pod.uid for pod in after.pods] == ["u1"]
    assert [(p.message, p.hint) for p in after.problems] == [("connection refused", "the last pods keep running")]


def test_what_was_remembered_is_not_published_anew_after_a_restart() -> None:
    before = plan(a_pod())
    restored = restored_state(stored_objects(before.state), gen=before.state.gen, listed_at=10.0)
    again = only(plan(a_pod(), before=restored, now=99.0))
    assert (again.gen, again.hash, again.seen) == (only(before).gen, only(before).hash, 10.0)


def test_a_mirror_pod_is_not_run() -> None:
    assert plan(a_pod(annotations={"kubernetes.io/config.mirror": "abc"})).pods == ()


def test_a_pod_made_anew_under_the_same_name_replaces_the_old_one() -> None:
    before = plan(a_pod())
    after = only(plan(a_pod(uid="u2"), before=before.state, now=20.0))
    assert after.uid == "u2" and after.gen > only(before).gen


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"runtimeClassName": "gvisor"}, "spec.runtimeClassName"),
        ({"hostUsers": False}, "spec.hostUsers"),
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]}, "volumes[0].persistentVolumeClaim"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"path": "ca"}}]}}]},
            "sources[0].clusterTrustBundle",
        ),
    ],
)
def test_what_podbus_cannot_run_is_published_with_the_fields_name(spec: dict[str, Any], told: str) -> None:
    found = plan(changed(a_pod(), **spec))
    assert told in refusal(only(found).body)
    assert told in found.problems[0].message


def test_what_every_pod_of_an_api_server_has_is_not_refused() -> None:
    pod = changed(
        a_pod(),
        serviceAccountName="default",
        serviceAccount="default",
        enableServiceLinks=True,
        priority=0,
        preemptionPolicy="PreemptLowerPriority",
        schedulerName="default-scheduler",
        tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        volumes=[
            {
                "name": "kube-api-access",
                "projected": {
                    "defaultMode": 420,
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    ],
                },
            }
        ],
    )
    found = plan(pod)
    assert refusal(only(found).body) == "" and found.problems == ()


def test_a_pod_that_cannot_be_read_leaves_its_last_version_and_the_others_alone() -> None:
    before = plan(a_pod(), a_pod("db", "u2"))
    broken = changed(a_pod(), containers="none")
    after = plan(broken, a_pod("db", "u2"), before=before.state)
    assert {pod.uid for pod in after.pods} == {"u1", "u2"}
    assert "can't be read" in after.problems[0].message


def test_ephemeral_containers_are_told_and_the_pod_runs_on() -> None:
    debugged = a_pod()
    debugged["spec"] = {**debugged["spec"], "ephemeralContainers": [{"name": "debugger", "image": "busybox:1.36"}]}
    found = plan(debugged)
    assert [(one.is_error, one.field) for one in found.problems] == [(False, "spec.ephemeralContainers")]
    assert only(found).name == "web"
