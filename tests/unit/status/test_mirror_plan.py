"""Which pictures of static pods are made and removed, whatever happens to pods and pictures."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from services.status.core.mirror_pods import StaticPod, mirror_of, plan_mirrors
from shared.contracts.pods import MirrorPod

BODY = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-n1",
        "namespace": "default",
        "uid": "u1",
        "annotations": {"kubernetes.io/config.hash": "u1", "a": "b"},
    },
    "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
    "status": {},
}


def static(uid: str, name: str = "web-n1") -> StaticPod:
    return StaticPod(uid=uid, namespace="default", name=name, body=json.dumps(BODY).encode())


def mirror(hash_: str, name: str = "web-n1", *, deleting: bool = False) -> MirrorPod:
    return MirrorPod(namespace="default", name=name, uid=f"m-{hash_}", hash=hash_, deleting=deleting)


def test_a_picture_names_its_pod_and_its_node() -> None:
    body = mirror_of(static("u1"), "n1", "node-uid")
    assert body["metadata"]["annotations"] == {
        "kubernetes.io/config.hash": "u1",
        "kubernetes.io/config.mirror": "u1",
        "a": "b",
    }
    assert body["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-uid", "controller": True}
    ]
    assert "uid" not in body["metadata"] and "status" not in body
    assert body["spec"] == BODY["spec"]


def test_a_new_pod_gets_one_and_an_unchanged_one_keeps_it() -> None:
    plan = plan_mirrors({"u1": static("u1")}, [], [])
    assert [pod.uid for pod in plan.make] == ["u1"] and plan.remove == []
    plan = plan_mirrors({"u1": static("u1")}, ["u1"], [mirror("u1")])
    assert plan.make == [] and plan.remove == []


def test_an_edited_pods_picture_comes_after_the_old_pods_end() -> None:
    old_ends = plan_mirrors({"u2": static("u2")}, ["u1"], [mirror("u1")])
    assert old_ends.make == [] and old_ends.remove == []
    old_gone = plan_mirrors({"u2": static("u2")}, ["u2"], [mirror("u1")])
    assert old_gone.make == [] and [one.hash for one in old_gone.remove] == ["u1"]
    assert [pod.uid for pod in plan_mirrors({"u2": static("u2")}, ["u2"], []).make] == ["u2"]


def test_one_that_somebody_deletes_is_let_go_and_made_anew() -> None:
    plan = plan_mirrors({"u1": static("u1")}, ["u1"], [mirror("u1", deleting=True)])
    assert plan.make == [] and [one.hash for one in plan.remove] == ["u1"]


uids = st.sampled_from(["u1", "u2", "u3"])


@given(st.sets(uids), st.sets(uids), st.sets(uids, max_size=1), st.booleans())
def test_there_are_never_two_of_one_name_and_none_of_what_is_gone(
    wanted: set[str], there: set[str], shown: set[str], is_deleting: bool
) -> None:
    """All of one name: at most one of those wanted is to be seen, and it is in the end."""
    wanted = set(sorted(wanted)[:1])
    pods = {uid: static(uid) for uid in wanted}
    pictures = {mirror(uid, deleting=is_deleting).hash: mirror(uid, deleting=is_deleting) for uid in shown}
    for _ in range(3):
        plan = plan_mirrors(pods, there, pictures.values())
        assert len(plan.make) + len(pictures) <= 1
        for gone in plan.remove:
            assert gone.deleting or gone.hash not in wanted | there
            del pictures[gone.hash]
        pictures |= {pod.uid: mirror(pod.uid) for pod in plan.make}
    if not shown & there - wanted or is_deleting:
        assert pictures.keys() == wanted
