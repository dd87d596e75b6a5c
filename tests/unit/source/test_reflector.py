"""The copy of a server's list is the server's, whatever happens between the two."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.source.core.reflected import Reflected, expired, listed, told
from services.source.handlers.reflector import Reflector
from tests.support.model_lists import ModelLists
from tests.support.virtual_loop import run_virtually

PODS = "/api/v1/pods"


def an_object(name: str, text: str = "") -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": name, "labels": {"text": text}}}


def place(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}"


STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abc")),
    st.tuples(st.just("delete"), st.sampled_from("abc")),
    st.tuples(st.sampled_from(["bookmark", "compact", "drop", "down", "up", "refuse", "rest", "wait"]), st.just("")),
)


@given(st.lists(STEPS, max_size=30))
@settings(max_examples=150, deadline=None)
def test_any_order_of_changes_breaks_and_expiries_gives_the_servers_set(steps: list[tuple[str, str]]) -> None:
    run_virtually(lambda: _follow(steps))


async def _follow(steps: list[tuple[str, str]]) -> None:
    server = ModelLists()
    reflector = Reflector(server, PODS, {}, lambda: None, Random(1))
    task = asyncio.create_task(reflector.run())
    for number, (step, name) in enumerate(steps):
        match step:
            case "put":
                server.put(place(name), an_object(name, str(number)))
            case "delete" if place(name) in server.objects:
                server.delete(place(name))
            case "bookmark":
                server.bookmark()
            case "compact":
                server.compact()
                server.drop_connections()
            case "drop":
                server.drop_connections()
            case "down":
                server.go_down()
            case "up":
                server.come_back()
                server.refusal = 0
            case "refuse":
                server.refusal = 403
                server.drop_connections()
            case "rest":
                await asyncio.sleep(0)
            case "wait":
                await asyncio.sleep(1)
    server.come_back()
    server.refusal = 0
    await asyncio.sleep(60)
    wanted = {f"default/{path.rsplit('/', 1)[1]}": body for path, body in server.objects.items()}
    assert reflector.known.objects == wanted
    assert reflector.known.was_listed
    assert reflector.error == ""
    assert not task.done()
    task.cancel()


async def _until_listed(server: ModelLists, reflector: Reflector) -> asyncio.Task[None]:
    task = asyncio.create_task(reflector.run())
    await asyncio.sleep(1)
    assert reflector.known.was_listed
    return task


def test_a_broken_watch_goes_on_from_where_it_was_without_a_list() -> None:
    async def body() -> None:
        server = ModelLists()
        server.put(place("a"), an_object("a"))
        reflector = Reflector(server, PODS, {}, lambda: None, Random(1))
        task = await _until_listed(server, reflector)
        server.drop_connections()
        server.put(place("b"), an_object("b"))
        await asyncio.sleep(5)
        assert sorted(reflector.known.objects) == ["default/a", "default/b"]
        assert server.count("GET") == 1
        task.cancel()

    run_virtually(body)


def test_a_bookmark_moves_the_version_so_that_a_quiet_list_never_expires() -> None:
    async def body() -> None:
        server = ModelLists()
        reflector = Reflector(server, PODS, {}, lambda: None, Random(1))
        task = await _until_listed(server, reflector)
        for _ in range(3):
            server.bookmark()
        await asyncio.sleep(1)
        assert reflector.known.version == str(server.version)
        server.compact()
        server.drop_connections()
        await asyncio.sleep(5)
        assert server.count("GET") == 1
        task.cancel()

    run_virtually(body)


def test_a_server_that_is_away_is_asked_less_and_less_often_and_nothing_is_forgotten() -> None:
    async def body() -> None:
        server = ModelLists()
        server.put(place("a"), an_object("a"))
        reflector = Reflector(server, PODS, {}, lambda: None, Random(1))
        task = await _until_listed(server, reflector)
        server.go_down()
        await asyncio.sleep(180)
        assert list(reflector.known.objects) == ["default/a"]
        assert "refused" in reflector.error
        assert 15 <= len(server.requests) <= 35  # 180 s at 10 s, and the first few
        server.come_back()
        await asyncio.sleep(13)
        assert reflector.error == "" or server.count("WATCH") > 1
        task.cancel()

    run_virtually(body)


def test_what_was_known_stays_until_a_new_list_is_complete() -> None:
    before = listed([an_object("a")], "5")
    assert expired(before).objects == before.objects
    assert expired(before).version == ""


@pytest.mark.parametrize("kind", ["BOOKMARK", "SOMETHING"])
def test_an_event_without_an_object_changes_no_object(kind: str) -> None:
    before = listed([an_object("a")], "5")
    after = told(before, kind, {"metadata": {"resourceVersion": "9"}})
    assert after == Reflected(before.objects, "9", was_listed=True)
