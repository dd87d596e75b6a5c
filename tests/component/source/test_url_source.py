"""source with a URL of manifests: a real server, a real nats-server, a real source.db."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shared.bus import connect
from shared.contracts.registry import RELOAD
from shared.contracts.sources import ReloadCommand
from shared.runtime.config import KubeletConfig
from tests.component.source.running import Shown, manifest, reader, running_source
from tests.support.eventually import eventually_async
from tests.support.manifest_server import ManifestServer, manifest_server, page
from tests.support.nats_server import NatsServer

pytestmark = pytest.mark.nats


@pytest.fixture
def server() -> Iterator[ManifestServer]:
    with manifest_server() as made:
        yield made


def asking(server: ManifestServer, **headers: list[str]) -> KubeletConfig:
    return KubeletConfig(
        static_pod_url=server.url("/pods"),
        static_pod_url_header={name: tuple(values) for name, values in headers.items()},
        http_check_seconds=0.05,
    )


def pod_list(*pods: tuple[str, str]) -> str:
    """A PodList of (name, image)."""
    items = [{"metadata": {"name": n}, "spec": {"containers": [{"name": "c", "image": i}]}} for n, i in pods]
    return json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items})


async def answered(server: ManifestServer, times: int = 2) -> None:
    """That many more requests were answered to their end: the one before the last was acted on."""
    before = len(server.asked)
    await eventually_async(lambda: len(server.asked) > before + times, within=10)


def body_of(shown: Shown, name: str) -> Any:
    return next(msgspec.json.decode(pod.body) for pod in shown.pods.values() if pod.name == name)


async def test_the_same_pod_from_a_url_is_another_one(
    nats_server: NatsServer, data: Path, manifests: Path, server: ManifestServer
) -> None:
    """S06: source http, another UID than the file's, no NoExecute toleration."""
    server.answers["/pods"] = page("")
    (manifests / "a.yaml").write_text(manifest("a"))
    async with running_source(nats_server, data, manifests, asking(server)), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        file_pod = body_of(shown, "a-n1")
        (manifests / "a.yaml").unlink()
        await eventually_async(lambda: not shown.pods, within=5)
        server.answers["/pods"] = page(manifest("a"))
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        url_pod = body_of(shown, "a-n1")
    assert file_pod["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"
    assert url_pod["metadata"]["annotations"]["kubernetes.io/config.source"] == "http"
    assert url_pod["metadata"]["annotations"]["kubernetes.io/config.hash"] == url_pod["metadata"]["uid"]
    assert url_pod["metadata"]["uid"] != file_pod["metadata"]["uid"]
    assert file_pod["spec"]["tolerations"] == [{"operator": "Exists", "effect": "NoExecute"}]
    assert "tolerations" not in url_pod["spec"]


async def test_a_list_of_pods_runs_and_headers_are_sent(
    nats_server: NatsServer, data: Path, server: ManifestServer
) -> None:
    server.answers["/pods"] = page(pod_list(("a", "x:1"), ("b", "x:1")))
    config = asking(server, Metadata=["one", "two"])
    async with running_source(nats_server, data, None, config), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1", "b-n1"}, within=5)
    assert server.headers_of("/pods", "Metadata") == ["one", "two"]


async def test_one_invalid_item_turns_the_whole_list_down(
    nats_server: NatsServer, data: Path, server: ManifestServer
) -> None:
    """S17: the old pods unchanged, none of the new ones."""
    server.answers["/pods"] = page(pod_list(("a", "x:1"), ("b", "x:1")))
    async with running_source(nats_server, data, None, asking(server)), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1", "b-n1"}, within=5)
        before = dict(shown.pods)
        server.answers["/pods"] = page(pod_list(("a", "x:2"), ("c", "x:1"), ("d", "")))
        await eventually_async(lambda: "not all items are valid: none is taken" in shown.told("http"), within=5)
        assert shown.pods == before


@pytest.mark.parametrize("trouble", [page("no", 500), page("{", 200), page(b"#" * (10 << 20) + b"##")])
async def test_what_is_no_good_answer_keeps_the_pods_and_is_told(
    nats_server: NatsServer, data: Path, server: ManifestServer, trouble: Any
) -> None:
    server.answers["/pods"] = page(manifest("a"))
    async with running_source(nats_server, data, None, asking(server)), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        server.answers["/pods"] = trouble
        await eventually_async(lambda: shown.markers["http"].errors, within=5)
        assert shown.names == {"a-n1"}
        server.answers["/pods"] = page(manifest("a"))
        await eventually_async(lambda: not shown.markers["http"].errors, within=5)


async def test_an_empty_answer_removes_all(nats_server: NatsServer, data: Path, server: ManifestServer) -> None:
    server.answers["/pods"] = page(manifest("a"))
    async with running_source(nats_server, data, None, asking(server)), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        server.answers["/pods"] = page("")
        await eventually_async(lambda: not shown.pods and not shown.markers["http"].uids, within=5)
        assert shown.told("http") == ["the answer is empty: no pods"]


async def test_a_pod_that_a_list_holds_twice_is_taken_once_and_told(
    nats_server: NatsServer, data: Path, server: ManifestServer
) -> None:
    server.answers["/pods"] = page(pod_list(("a", "x:1"), ("a", "x:2")))
    async with running_source(nats_server, data, None, asking(server)), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        assert shown.image_of("a-n1") == "x:1"
        assert any("also in" in text for text in shown.told("http"))


async def test_a_url_that_has_not_answered_is_not_ready(
    nats_server: NatsServer, data: Path, manifests: Path, server: ManifestServer
) -> None:
    """S20, source's part: the directory's pods run meanwhile."""
    held = threading.Event()

    def never(request: BaseHTTPRequestHandler) -> None:
        held.wait(20)

    server.answers["/pods"] = never
    (manifests / "a.yaml").write_text(manifest("a"))
    async with running_source(nats_server, data, manifests, asking(server)), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1"} and "http" in shown.markers, within=5)
        assert not shown.markers["http"].ready
        server.answers["/pods"] = page("")
        held.set()
        await eventually_async(lambda: shown.markers["http"].ready, within=10)


async def test_after_a_restart_the_last_good_set_runs_but_is_not_ready_before_an_answer(
    nats_server: NatsServer, data: Path, server: ManifestServer
) -> None:
    """The URL may want more by now: nothing is ended for it."""
    server.answers["/pods"] = page(manifest("a"))
    async with reader(nats_server) as shown:
        async with running_source(nats_server, data, None, asking(server)):
            await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
            before = next(iter(shown.pods.values()))
        server.answers["/pods"] = page("", 500)
        shown.history.clear()
        async with running_source(nats_server, data, None, asking(server)):
            await eventually_async(lambda: shown.markers["http"].errors, within=5)
            assert not shown.markers["http"].ready
            after = next(iter(shown.pods.values()))
            assert (after.uid, after.gen, after.seen) == (before.uid, before.gen, before.seen)
            assert all(names == {"a-n1"} for names in shown.history)
            server.answers["/pods"] = page(manifest("b"))
            await eventually_async(lambda: shown.names == {"b-n1"} and shown.markers["http"].ready, within=5)


async def test_of_one_name_in_two_sources_the_running_one_stays_and_both_are_told(
    nats_server: NatsServer, data: Path, manifests: Path, server: ManifestServer
) -> None:
    server.answers["/pods"] = page(manifest("a", "x:url"))
    async with running_source(nats_server, data, manifests, asking(server)), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        (manifests / "a.yaml").write_text(manifest("a", "x:file"))
        await eventually_async(lambda: shown.errors and shown.markers["http"].errors, within=5)
        assert shown.image_of("a-n1") == "x:url"
        assert f"also in {server.url('/pods')}" in shown.errors[0]
        assert f"also in {manifests}/a.yaml" in shown.told("http")[0]
        server.answers["/pods"] = page("")
        await eventually_async(lambda: shown.names and shown.image_of("a-n1") == "x:file", within=5)
        await eventually_async(lambda: not shown.errors and not shown.markers["http"].errors, within=5)


async def test_a_fixed_uid_that_moves_to_the_other_source_is_newer_there(
    nats_server: NatsServer, data: Path, manifests: Path, server: ManifestServer
) -> None:
    """Else its owner would wait for ever for a version that it takes for an old one."""
    fixed = manifest("a").replace("name: a}", "name: a, uid: fixed}")
    server.answers["/pods"] = page("")
    (manifests / "a.yaml").write_text(fixed)
    async with running_source(nats_server, data, manifests, asking(server)), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        for image in ("x:2", "x:3"):
            (manifests / "a.yaml").write_text(fixed.replace("busybox:1.36", image))
            await eventually_async(lambda image=image: shown.image_of("a-n1") == image, within=5)  # type: ignore[misc]
        before = shown.pods["fixed"]
        server.answers["/pods"] = page(fixed)
        await eventually_async(lambda: shown.errors, within=5)
        (manifests / "a.yaml").unlink()
        await eventually_async(lambda: shown.pods.get("fixed", before).source == "http", within=5)
        assert shown.pods["fixed"].gen > before.gen


async def test_a_source_that_is_not_configured_any_more_leaves_nothing_on_the_bus(
    nats_server: NatsServer, data: Path, manifests: Path, server: ManifestServer
) -> None:
    server.answers["/pods"] = page(manifest("a"))
    async with reader(nats_server) as shown:
        async with running_source(nats_server, data, manifests, asking(server)):
            await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        async with running_source(nats_server, data, manifests):
            await eventually_async(lambda: not shown.pods and set(shown.markers) == {"file"}, within=5)


async def test_the_same_answer_again_changes_nothing(
    nats_server: NatsServer, data: Path, server: ManifestServer
) -> None:
    server.answers["/pods"] = page(manifest("a"))
    async with running_source(nats_server, data, None, asking(server)), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        before = dict(shown.pods)
        await answered(server)
        assert shown.pods == before


async def test_reload_asks_the_url_at_once(nats_server: NatsServer, data: Path, server: ManifestServer) -> None:
    config = KubeletConfig(static_pod_url=server.url("/pods"), http_check_seconds=3600)
    server.answers["/pods"] = page("")
    async with running_source(nats_server, data, None, config):
        await eventually_async(lambda: server.asked, within=5)
        server.answers["/pods"] = page(manifest("a"))
        api = await connect(nats_server.credentials("api"), node="n1", service="api", name="api")
        reply = await api.request(RELOAD, ReloadCommand(), timeout=5)
        assert (reply.pods, reply.errors) == (1, 0)
        await api.drain()
