"""What is generated for a pod from a file or URL (lifecycle 1.4)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from services.source.core.manifest import read_manifests
from services.source.core.static_pods import canonical_json, content_hash, make_static_pod, static_uid


def body_of(text: str = "") -> dict[str, Any]:
    manifest = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web" + text + "}\nspec: {containers: [{name: c, image: x:1}]}\n"
    )
    (found,) = read_manifests("f", manifest.encode()).manifests
    return found.body


def static(body: dict[str, Any], **kw: str) -> dict[str, Any]:
    pod, errors = make_static_pod(body, **{"source": "file", "node": "Node1", "origin": "/m/web.yaml", **kw})
    assert errors.found == []
    return pod


def test_the_uid_of_a_known_pod_never_changes() -> None:
    """An upgrade of podbus that changes this restarts every static pod."""
    assert static(body_of())["metadata"]["uid"] == "7155b1e46df113a30beb3dd7d4253735"


def test_content_node_and_path_decide_the_uid() -> None:
    body = body_of()
    uid = static_uid(body, "file", "n", "/m/a.yaml")
    assert uid == static_uid(copy.deepcopy(body), "file", "n", "/m/a.yaml")
    others = {
        static_uid(body, "file", "n", "/m/b.yaml"),
        static_uid(body, "file", "n2", "/m/a.yaml"),
        static_uid(body_of(", labels: {a: b}"), "file", "n", "/m/a.yaml"),
        static_uid(body, "http", "n", "/m/a.yaml"),
    }
    assert len(others | {uid}) == 5
    assert len(uid) == 32 and int(uid, 16)


def test_the_order_of_fields_does_not_matter() -> None:
    assert static_uid({"a": 1, "b": 2}, "file", "n", "f") == static_uid({"b": 2, "a": 1}, "file", "n", "f")


def test_a_url_gives_the_same_uid_on_every_node() -> None:
    body = body_of()
    assert static_uid(body, "http", "n1", "http://x/") == static_uid(body, "http", "n2", "http://x/")


def test_a_given_uid_is_kept() -> None:
    pod = static(body_of(", uid: my-uid"))
    assert pod["metadata"]["uid"] == "my-uid"
    assert pod["metadata"]["annotations"]["kubernetes.io/config.hash"] == "my-uid"


def test_name_namespace_node_and_annotations_are_set() -> None:
    pod = static(body_of(", annotations: {a: b, kubernetes.io/config.seen: x, kubernetes.io/config.source: api}"))
    meta = pod["metadata"]
    assert (meta["name"], meta["namespace"]) == ("web-node1", "default")
    assert pod["spec"]["nodeName"] == "Node1"
    assert meta["annotations"] == {
        "a": "b",
        "kubernetes.io/config.hash": meta["uid"],
        "kubernetes.io/config.source": "file",
    }


def test_a_file_pod_tolerates_no_execute_and_a_url_pod_does_not() -> None:
    assert static(body_of())["spec"]["tolerations"] == [{"operator": "Exists", "effect": "NoExecute"}]
    assert "tolerations" not in static(body_of(), source="http")["spec"]


def test_the_toleration_is_not_added_twice() -> None:
    body = body_of()
    body["spec"]["tolerations"] = [{"key": "a"}, {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]
    assert static(body)["spec"]["tolerations"] == [{"key": "a"}, {"operator": "Exists", "effect": "NoExecute"}]


def test_the_manifest_itself_is_not_changed() -> None:
    body = body_of(", annotations: {a: b}")
    before = copy.deepcopy(body)
    static(body)
    assert body == before


def test_a_name_that_the_suffix_makes_too_long_is_refused() -> None:
    body = body_of()
    body["metadata"]["name"] = "a" * 250
    _, errors = make_static_pod(body, source="file", node="node1", origin="f")
    assert "no more than 253" in errors.found[0].message


@pytest.mark.parametrize(
    "key", ["kubernetes.io/config.seen", "kubernetes.io/config.source", "kubernetes.io/config.mirror"]
)
def test_where_a_pod_came_from_is_not_its_content(key: str) -> None:
    pod = static(body_of())
    other = copy.deepcopy(pod)
    other["metadata"]["annotations"][key] = "changed"
    other["status"] = {"phase": "Running"}
    assert content_hash(other) == content_hash(pod)


def test_a_label_an_annotation_and_the_spec_are_content() -> None:
    pod = static(body_of())
    hashes = {content_hash(pod)}
    for place, key in ((pod["metadata"], "labels"), (pod["metadata"]["annotations"], "x"), (pod["spec"], "hostname")):
        place[key] = {"a": "b"} if key == "labels" else "h"
        hashes.add(content_hash(pod))
    assert len(hashes) == 4


def test_canonical_json_is_sorted_compact_utf8() -> None:
    assert canonical_json({"b": [1, "\u00e4"], "a": None}) == '{"a":null,"b":[1,"\u00e4"]}'.encode()
