"""An absent pod is not a removed one: only a ready list of its source removes."""

from __future__ import annotations

import msgspec
import pytest

from services.podworker.handlers.desired_pods import DesiredPods
from shared.contracts.pods import PodDesired, SourceMarker, SourceName

BODY = msgspec.Raw(b'{"metadata":{"name":"a"},"spec":{"containers":[]}}')


def pod(uid: str, gen: int = 1) -> bytes:
    return msgspec.json.encode(
        PodDesired(
            v=1,
            node="n1",
            ts=0.0,
            uid=uid,
            namespace="default",
            name=uid,
            source="file",
            gen=gen,
            hash="h",
            seen=0.0,
            body=BODY,
        )
    )


def marker(*uids: str, ready: bool = True, source: SourceName = "file") -> bytes:
    return msgspec.json.encode(
        SourceMarker(v=1, node="n1", ts=0.0, source=source, ready=ready, epoch="e", uids=list(uids))
    )


@pytest.fixture
def changed() -> list[str]:
    return []


@pytest.fixture
def desired(changed: list[str]) -> DesiredPods:
    return DesiredPods(["file"], changed.append)


def test_an_empty_bucket_removes_nothing(desired: DesiredPods) -> None:
    desired.on_list({"pod.a": pod("a"), "source.file": marker("a")})
    desired.on_list({})
    assert desired.verdict("a", "file") == "unknown"
    assert not desired.all_sources_ready


def test_a_ready_list_without_the_pod_removes_it(desired: DesiredPods) -> None:
    desired.on_list({"source.file": marker("b")})
    assert desired.verdict("a", "file") == "removed"


def test_a_list_that_is_not_ready_removes_nothing(desired: DesiredPods) -> None:
    desired.on_list({"source.file": marker(ready=False)})
    assert desired.verdict("a", "file") == "unknown"


def test_a_pod_whose_key_is_there_is_wanted_whatever_an_older_list_says(desired: DesiredPods) -> None:
    """source puts pods before their marker: the old marker doesn't know the new pod yet."""
    desired.on_list({"source.file": marker()})
    desired.on_change("pod.a", pod("a"))
    assert desired.verdict("a", "file") == "wanted"


def test_a_key_that_went_while_its_list_names_it_tells_nothing(desired: DesiredPods) -> None:
    desired.on_list({"pod.a": pod("a"), "source.file": marker("a")})
    desired.on_change("pod.a", None)
    assert desired.verdict("a", "file") == "unknown"
    desired.on_change("source.file", marker())
    assert desired.verdict("a", "file") == "removed"


def test_pods_of_a_source_that_is_not_configured_any_more_go_once_all_others_are_ready(desired: DesiredPods) -> None:
    assert desired.verdict("a", "http") == "unknown"
    desired.on_list({"source.file": marker()})
    assert desired.verdict("a", "http") == "removed"


def test_a_list_tells_only_what_differs(desired: DesiredPods, changed: list[str]) -> None:
    desired.on_list({"pod.a": pod("a"), "pod.b": pod("b")})
    changed.clear()
    desired.on_list({"pod.a": pod("a"), "pod.b": pod("b", gen=2), "pod.c": pod("c")})
    assert sorted(changed) == ["", "b", "c"]


def test_a_message_that_is_not_understood_changes_nothing_else(desired: DesiredPods) -> None:
    desired.on_list({"pod.a": b"{nonsense", "pod.b": pod("b")})
    assert [p.uid for p in desired] == ["b"]


def test_a_source_that_is_not_ready_holds_up_its_own_removals_and_all_orphans() -> None:
    """S20: the other source's removals go on."""
    desired = DesiredPods(["file", "http"], lambda _: None)
    desired.on_list({"source.file": marker(), "source.http": marker(ready=False, source="http")})
    seen = [desired.all_sources_ready]
    assert desired.verdict("a", "http") == "unknown"
    assert desired.verdict("a", "") == "unknown"
    assert desired.verdict("a", "file") == "removed"
    desired.on_change("source.http", marker(source="http"))
    seen.append(desired.all_sources_ready)
    assert seen == [False, True]
    assert desired.verdict("a", "http") == "removed"


def test_a_source_that_has_said_nothing_is_not_ready() -> None:
    desired = DesiredPods(["file", "http"], lambda _: None)
    desired.on_list({"source.file": marker()})
    assert not desired.all_sources_ready
    assert desired.verdict("a", "http") == "unknown"
