"""The view of the node: what /pods shows, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from services.api.core.node_view import NodeView
from shared.contracts.pods import PodDesired
from shared.contracts.registry import (
    NODE_REPORT,
    POD_DESIRED,
    POD_REPORT,
    RUNTIME_REPORT,
    SOURCE_MARKER,
)
from shared.contracts.status import RuntimeReport

GOLDEN = Path(__file__).parents[2] / "golden" / "wire" / "pods.json"
EMPTY = b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}\n'


def _desired(name: str, *, uid: str = "", namespace: str = "ns", body: Any = None) -> tuple[str, bytes]:
    uid = uid or f"uid-{name}"
    made = body or {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "spec": {"containers": [{"name": "c1", "image": "i"}], "initContainers": [{"name": "i1", "image": "i"}]},
    }
    message = PodDesired(
        v=1,
        node="n1",
        ts=1.0,
        uid=uid,
        namespace=namespace,
        name=name,
        source="file",
        gen=1,
        hash="h",
        seen=1.0,
        body=msgspec.Raw(json.dumps(made, separators=(",", ":")).encode()),
    )
    return POD_DESIRED.key(uid), msgspec.json.encode(message)


def _report(name: str, *, uid: str = "", status: Any = None, **more: Any) -> tuple[str, bytes]:
    uid = uid or f"uid-{name}"
    message = {
        "v": 1,
        "node": "n1",
        "ts": 1.0,
        "uid": uid,
        "namespace": "ns",
        "name": name,
        "source": "file",
        "gen": 1,
        "rev": 1,
        "owner": 0,
        "state": "sync",
        "status": status or {"phase": "Running", "qosClass": "BestEffort"},
        **more,
    }
    return POD_REPORT.key(uid), json.dumps(message, separators=(",", ":")).encode()


def _items(view: NodeView) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(view.pod_list())["items"] or []
    return items


def test_no_pods_are_null() -> None:
    assert NodeView(0.0).pod_list() == EMPTY


def test_a_pod_looks_as_the_kubelet_shows_it() -> None:
    """Differences of the newest Kubernetes to the recording of 1.20.2: no selfLink, no creationTimestamp: null."""
    recorded = GOLDEN.read_text().replace('"creationTimestamp":null,', "")
    recorded = recorded.replace('"selfLink":"/api/v1/namespaces/default/pods/web-peer",', "")
    (item,) = json.loads(recorded)["items"]
    uid = item["metadata"]["uid"]
    metadata = {**dict(reversed(item["metadata"].items())), "creationTimestamp": None}  # the order is ours to make
    view = NodeView(0.0)
    view.list_pods(
        dict([_desired("web-peer", uid=uid, body={"kind": "Pod", "metadata": metadata, "spec": item["spec"]})])
    )
    view.list_status(dict([_report("web-peer", uid=uid, status=item["status"])]))
    assert view.pod_list() == recorded.encode()


def test_a_pod_without_a_report_is_pending() -> None:
    view = NodeView(0.0)
    view.change_pods(*_desired("a"))
    (item,) = _items(view)
    assert item["status"] == {"phase": "Pending"}
    assert "kind" not in item


def test_a_pod_that_came_with_a_status_keeps_it_until_its_worker_speaks() -> None:
    body = {"metadata": {"name": "a"}, "spec": {"containers": []}, "status": {"phase": "Succeeded"}}
    view = NodeView(0.0)
    view.change_pods(*_desired("a", body=body))
    assert _items(view)[0]["status"] == {"phase": "Succeeded"}
    view.change_status(*_report("a"))
    assert _items(view)[0]["status"]["phase"] == "Running"


def test_pods_are_in_order_of_namespace_and_name() -> None:
    view = NodeView(0.0)
    for name, namespace in (("b", "x"), ("a", "y"), ("a", "x")):
        view.change_pods(*_desired(name, uid=f"{namespace}{name}", namespace=namespace))
    names = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in _items(view)]
    assert names == [("x", "a"), ("x", "b"), ("y", "a")]


def test_a_pod_that_ends_shows_when_its_grace_is_over() -> None:
    view = NodeView(0.0)
    view.change_pods(*_desired("a"))
    view.change_status(*_report("a", deletion_at=1764547200.5, deletion_grace=30))
    metadata = _items(view)[0]["metadata"]
    assert metadata["deletionTimestamp"] == "2025-12-01T00:00:30Z"
    assert metadata["deletionGracePeriodSeconds"] == 30


def test_a_pod_that_ends_is_shown_also_when_nobody_wants_it_any_more() -> None:
    """With the body that its report carries, e.g. after this service's restart."""
    body = {"kind": "Pod", "metadata": {"name": "a", "namespace": "ns"}, "spec": {"containers": [{"name": "c1"}]}}
    view = NodeView(0.0)
    view.list_pods({})
    view.list_status(dict([_report("a", deletion_at=10.0, deletion_grace=5, body=body)]))
    (item,) = _items(view)
    assert item["spec"] == body["spec"]
    assert item["metadata"]["deletionTimestamp"] == "1970-01-01T00:00:15Z"
    assert view.count() == (0, 1)


def test_a_pod_whose_desired_key_went_first_stays_until_its_report_goes() -> None:
    view = NodeView(0.0)
    key, raw = _desired("a")
    view.change_pods(key, raw)
    view.change_status(*_report("a"))
    view.change_pods(key, None)
    assert len(_items(view)) == 1
    view.change_status(POD_REPORT.key("uid-a"), None)
    assert view.pod_list() == EMPTY


def test_a_pod_that_nobody_wants_nor_reports_is_gone() -> None:
    view = NodeView(0.0)
    key, raw = _desired("a")
    view.change_pods(key, raw)
    view.change_pods(key, None)
    assert view.pod_list() == EMPTY
    view.change_pods(key, None)
    view.change_status(POD_REPORT.key("uid-a"), None)
    assert view.pod_list() == EMPTY


def test_a_list_replaces_what_was_there() -> None:
    view = NodeView(0.0)
    view.list_pods(dict([_desired("a"), _desired("b")]))
    view.list_status(dict([_report("a"), _report("b")]))
    view.list_pods(dict([_desired("b"), _desired("c")]))
    assert [item["metadata"]["name"] for item in _items(view)] == ["a", "b", "c"]
    view.list_status(dict([_report("b")]))
    assert [(item["metadata"]["name"], item["status"]["phase"]) for item in _items(view)] == [
        ("b", "Running"),
        ("c", "Pending"),
    ]


def test_a_repeated_message_changes_nothing_that_was_made() -> None:
    view = NodeView(0.0)
    entries = dict([_desired("a")])
    view.list_pods(entries)
    first = view.pod_list()
    view.list_pods({key: bytes(raw) for key, raw in entries.items()})
    assert view.pod_list() is first


def test_a_message_that_can_not_be_read_hides_only_its_own_pod() -> None:
    view = NodeView(0.0)
    view.change_pods(*_desired("good"))
    view.change_pods(POD_DESIRED.key("bad"), b'{"v":1,"nonsense')
    view.change_pods(*_desired("half", body={"metadata": {"name": "half"}}))
    assert [item["metadata"]["name"] for item in _items(view)] == ["good"]
    assert set(view.problems) == {POD_DESIRED.key("bad"), POD_DESIRED.key("uid-half")}


def test_a_bad_report_leaves_its_pod_pending() -> None:
    view = NodeView(0.0)
    view.change_pods(*_desired("a"))
    view.change_status(POD_REPORT.key("uid-a"), b"[]")
    assert _items(view)[0]["status"] == {"phase": "Pending"}


def test_a_pod_is_found_by_name_with_all_its_containers() -> None:
    view = NodeView(0.0)
    view.change_pods(*_desired("a"))
    found = view.find_pod("ns", "a")
    assert found is not None
    assert (found.uid, found.containers, found.status) == ("uid-a", ("i1", "c1"), None)
    view.change_status(*_report("a"))
    found = view.find_pod("ns", "a")
    assert found is not None and found.status is not None and found.status.phase == "Running"
    assert view.find_pod("other", "a") is None


def test_an_edited_pod_is_found_in_its_new_version() -> None:
    """An edited static pod has a new UID; its old version may still be ending under the same name."""
    for order in (("old", "new"), ("new", "old")):
        view = NodeView(0.0)
        for uid in order:
            view.change_pods(*_desired("a", uid=uid))
            view.change_status(*_report("a", uid=uid))
        view.change_pods(POD_DESIRED.key("old"), None)
        found = view.find_pod("ns", "a")
        assert found is not None and found.uid == "new"
        assert len(_items(view)) == 2


def test_markers_runtime_and_node_are_the_last_ones_published() -> None:
    view = NodeView(0.0)
    assert (view.markers(), view.runtime(), view.node()) == ([], None, None)
    view.change_pods(SOURCE_MARKER.key("file"), msgspec.json.encode(SOURCE_MARKER.example))
    view.change_status(RUNTIME_REPORT.key(), msgspec.json.encode(RUNTIME_REPORT.example))
    view.change_status(NODE_REPORT.key(), msgspec.json.encode(NODE_REPORT.example))
    assert view.markers() == [SOURCE_MARKER.example]
    runtime = view.runtime()
    assert runtime is not None and runtime.engine_version == "20.10.24"
    assert view.node() == b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}}'
    view.list_pods({})
    view.list_status({})
    assert (view.markers(), view.runtime(), view.node()) == ([], None, None)


def test_a_worker_counts_for_twenty_seconds_after_its_last_heartbeat() -> None:
    view = NodeView(started_at=0.0)
    view.worker_heard(0, 100.0)
    view.worker_heard(2, 90.0)
    assert view.live_workers(110.0) == [0, 2]
    assert view.live_workers(120.0) == [0]
    assert view.no_worker(120.0) is None
    assert view.no_worker(125.0) == "no podworker is alive: the last heartbeat came 25 s ago"


def test_at_the_start_it_is_too_early_to_miss_a_worker() -> None:
    view = NodeView(started_at=100.0)
    assert view.no_worker(120.0) is None
    assert view.no_worker(121.0) == "no podworker was heard since 21 s"


def test_an_engine_that_was_not_reported_for_three_times_its_period_is_told() -> None:
    view = NodeView(started_at=0.0)
    assert view.stale(1000.0) is None
    report = RuntimeReport(v=1, node="n1", ts=100.0, healthy=True, relisted_at=100.0)
    view.change_status(RUNTIME_REPORT.key(), msgspec.json.encode(report))
    assert view.stale(135.0) is None
    assert view.stale(136.0) == "the engine was last reported 36 s ago: what is shown may be old"


def test_pods_are_counted_as_they_are_reported_now() -> None:
    view = NodeView(started_at=0.0)
    running = {"phase": "Running", "qosClass": "BestEffort"}
    ended = {"phase": "Succeeded", "qosClass": "BestEffort"}
    assert view.tally().running_pods == 0
    view.change_status(*_report("a", status=running))
    view.change_status(*_report("b", status=running))
    assert view.tally().running_pods == 2
    view.change_status(*_report("a", status=ended))
    assert view.tally().running_pods == 1
    view.list_status({})
    assert view.tally().running_pods == 0
