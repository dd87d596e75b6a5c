"""The event stream through an engine's restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.podworker.adapters.docker_calls import DockerCalls
from services.podworker.adapters.docker_events import MAX_PENDING, EventStream
from shared.kube import names
from tests.contract.runtime.engines import DockerEngine, new_pod, run_pod
from tests.contract.runtime.sockets import Proxy
from tests.support.eventually import eventually_async


def an_event(uid: str, container: str = "c1") -> dict[str, Any]:
    return {"Actor": {"ID": container, "Attributes": {names.LABEL_POD_UID: uid}}}


def a_stream(on_change: Callable[[str], None] = lambda _container: None) -> EventStream:
    return EventStream(DockerCalls("test", 1, "unix:///nowhere"), "i", on_change)


def test_many_events_of_a_pod_are_one_hint() -> None:
    stream = a_stream()
    for uid in ("a", "b", "a"):
        stream._add(an_event(uid))
    assert stream._take() == ["a", "b"]
    assert stream._take() == []


def test_too_many_pods_at_once_mean_list_everything() -> None:
    stream = a_stream()
    for number in range(MAX_PENDING + 1):
        stream._add(an_event(str(number)))
    assert stream._take() == [None]


def test_an_event_says_which_container_to_inspect_again() -> None:
    changed: list[str] = []
    stream = a_stream(changed.append)
    stream._add(an_event("a", "c7"))
    stream._lose()
    assert changed == ["c7", ""]


@pytest.mark.docker
async def test_an_engine_that_comes_back_means_list_everything(docker_engine: DockerEngine, socket_dir: Path) -> None:
    """Nothing is announced: the stream ends, and what happened meanwhile is in no event."""
    proxy = Proxy(socket_dir / "d.sock")
    proxy.open()
    calls = DockerCalls("test", 1, proxy.url)
    stream = EventStream(calls, docker_engine.instance, lambda _container: None)
    hints: list[str | None] = []

    async def collect() -> None:
        async for hint in stream.changes():
            hints.append(hint)

    reader = asyncio.create_task(collect())
    await eventually_async(lambda: hints == [None], within=5)
    for _ in range(2):
        hints.clear()
        proxy.cut()
        pod = new_pod()
        await run_pod(docker_engine, pod)
        assert hints == []
        proxy.open()
        await eventually_async(lambda: hints == [None], within=5)
    _, (container_id,) = await run_pod(docker_engine, new_pod())
    hints.clear()
    docker_engine.client.kill(container_id)
    await eventually_async(lambda: len(hints) == 1 and hints != [None], within=5)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    assert stream.is_closed
    proxy.cut()
    calls.close()


@pytest.mark.docker
async def test_calls_go_on_after_the_engine_came_back(docker_engine: DockerEngine, socket_dir: Path) -> None:
    """One call is lost with the connection, or none; the next is answered."""
    proxy = Proxy(socket_dir / "d.sock")
    proxy.open()
    calls = DockerCalls("test", 2, proxy.url)
    await calls.run(lambda client: client.ping())
    proxy.cut()
    with pytest.raises(Exception, match="the container engine at"):
        await calls.run(lambda client: client.ping())
    proxy.open()
    assert await calls.run(lambda client: client.ping())
    calls.close()
    proxy.cut()
