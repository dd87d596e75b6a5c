"""Bytes of lists and items."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from services.api.core.render import Deletion, as_go_writes, pod_item, pod_list, running_pods
from shared.contracts.worker import RunningContainerImage, RunningPod, RunningPods

WIRE = Path(__file__).parents[2] / "golden" / "wire"


def test_running_pods_look_as_the_kubelet_shows_them() -> None:
    """Difference of the newest Kubernetes to the recording of 1.20.2: no creationTimestamp: null."""
    recorded = (WIRE / "runningpods.json").read_text()
    (item,) = json.loads(recorded)["items"]
    pod = RunningPod(
        namespace=item["metadata"]["namespace"],
        name=item["metadata"]["name"],
        uid=item["metadata"]["uid"],
        containers=[RunningContainerImage(name=c["name"], image=c["image"]) for c in item["spec"]["containers"]],
    )
    assert running_pods(RunningPods(pods=[pod])).decode() == recorded.replace(',"creationTimestamp":null', "")


def test_the_summary_is_indented_as_the_kubelets() -> None:
    recorded = (WIRE / "stats-summary.json").read_bytes()
    compact = msgspec.json.encode(msgspec.json.decode(recorded))
    assert as_go_writes(msgspec.json.format(compact, indent=1)) == recorded.rstrip(b"\n")


def test_no_items_are_null_and_the_end_is_a_newline() -> None:
    assert pod_list([]).endswith(b'"items":null}\n')
    assert pod_list([b"{}", b"{}"]).endswith(b'"items":[{},{}]}\n')


@pytest.mark.parametrize("text", ["a<b>c&d", "line\u2028paragraph\u2029", 'back\\slash "quoted" \\u003c', "é plain"])
def test_go_escapes_change_the_bytes_and_not_the_meaning(text: str) -> None:
    plain = msgspec.json.encode({text: text})
    escaped = as_go_writes(plain)
    assert json.loads(escaped) == {text: text}
    assert not any(sign in escaped for sign in (b"<", b">", b"&", "\u2028".encode()))


def test_a_deletion_that_the_api_server_set_is_kept() -> None:
    body = b'{"metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{}}'
    item = json.loads(pod_item(body, None, Deletion(1.0, 2)))
    assert item["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"


def test_unknown_metadata_goes_to_the_end() -> None:
    item = pod_item(b'{"metadata":{"x":1,"labels":{},"name":"a"},"spec":{}}', b"{}", None)
    assert item == b'{"metadata":{"name":"a","labels":{},"x":1},"spec":{},"status":{}}'
