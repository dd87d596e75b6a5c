"""How it ends, and how it goes on without the bus."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import pytest

from shared.bus import BusUnavailable
from shared.contracts.registry import STREAM
from tests.component.api.other_services import OtherServices, running_status
from tests.component.api.process import ApiProcess
from tests.support.eventually import eventually, eventually_async
from tests.support.nats_server import NatsServer

pytestmark = pytest.mark.nats


async def _shown(api: ApiProcess, text: bytes) -> None:
    async def shown() -> bool:
        return text in (await api.ask_async("/pods")).body

    await eventually_async(shown, within=10)


async def test_pods_are_served_from_memory_while_the_bus_is_away(
    own_api: ApiProcess, own_others: OtherServices, nats_server: NatsServer
) -> None:
    await own_others.want("web")
    await own_others.report("web", running_status())
    await _shown(own_api, b'"Running"')
    nats_server.stop(signal.SIGKILL)

    async def is_stale() -> bool:
        answer = await own_api.ask_async("/pods")
        assert answer.status == 200
        assert b'"name":"web"' in answer.body
        assert b'"Running"' in answer.body
        return answer.headers.get("x-stale") == "true"

    await eventually_async(is_stale, within=5)
    assert (await own_api.ask_async("/stats/summary")).status == 503
    nats_server.start()

    async def is_fresh() -> bool:
        answer = await own_api.ask_async("/pods")
        assert b'"name":"web"' in answer.body
        return "x-stale" not in answer.headers

    await eventually_async(is_fresh, within=10)


async def test_a_wiped_store_shows_what_is_published_again(
    own_api: ApiProcess, own_others: OtherServices, nats_server: NatsServer
) -> None:
    await own_others.want("old")
    await _shown(own_api, b'"name":"old"')
    nats_server.stop(signal.SIGKILL)
    nats_server.wipe()
    nats_server.start()

    async def published() -> bool:
        try:
            return bool(await own_others.want("new"))
        except BusUnavailable as error:
            raise OSError(str(error)) from error

    await eventually_async(published, within=20)
    await _shown(own_api, b'"name":"new"')


async def test_sigterm_ends_cleanly_also_while_a_log_is_followed(
    own_api: ApiProcess, own_others: OtherServices
) -> None:
    started = asyncio.Event()

    async def follow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"line\n")
        started.set()
        await reader.read()

    own_others.log_handler = follow
    await own_others.want("p1")
    await own_others.report("p1", running_status())
    await own_others.answer(STREAM)
    await _shown(own_api, b'"Running"')
    following = asyncio.create_task(own_api.ask_async("/containerLogs/ns/p1/c1?follow=true"))
    await asyncio.wait_for(started.wait(), 10)
    code = await asyncio.to_thread(own_api.stop)
    assert code == 0
    assert (await following).body == b"line\n"
    assert "Traceback" not in own_api.log()


def test_sigterm_does_not_wait_for_idle_connections(own_api: ApiProcess) -> None:
    plain = socket.create_connection(("127.0.0.1", own_api.port))
    with plain, own_api.client_context().wrap_socket(plain, server_hostname="127.0.0.1"):
        assert own_api.stop() == 0


def test_it_waits_for_its_certificates(unstarted_api: ApiProcess, tmp_path: Path) -> None:
    api = unstarted_api
    api.prepare()
    hidden = (api.paths.pki / "serving.crt").rename(tmp_path / "serving.crt")
    api.spawn()
    eventually(lambda: "phase=waiting for" in api.log(), within=20)
    hidden.rename(api.paths.pki / "serving.crt")
    eventually(lambda: api.ask("/healthz").status == 200, within=20)
    assert api.stop() == 0


def test_it_can_be_stopped_while_it_waits(unstarted_api: ApiProcess) -> None:
    unstarted_api.prepare()
    (unstarted_api.paths.pki / "ca.crt").unlink()
    unstarted_api.spawn()
    eventually(lambda: "phase=waiting for" in unstarted_api.log(), within=20)
    assert unstarted_api.stop() == 0


def test_a_taken_port_is_named_and_ends_the_process(unstarted_api: ApiProcess) -> None:
    unstarted_api.prepare()
    with socket.create_server(("127.0.0.1", unstarted_api.port)):
        unstarted_api.spawn()
        assert unstarted_api.wait() == 1
    assert f"can't listen on 127.0.0.1:{unstarted_api.port}" in unstarted_api.log()


def test_a_taken_health_port_does_not_stop_the_api(unstarted_api: ApiProcess) -> None:
    api = unstarted_api
    with socket.create_server(("127.0.0.1", api.healthz_port)):
        api.start()
        assert f"can't listen on 127.0.0.1:{api.healthz_port}" in api.log()
        assert api.ask("/healthz").status == 200
    assert api.stop() == 0


async def test_sigterm_does_not_wait_for_a_client_that_does_not_read(
    own_api: ApiProcess, own_others: OtherServices
) -> None:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    own_others.log_handler = pour
    await own_others.want("p1")
    await own_others.report("p1", running_status())
    await own_others.answer(STREAM)
    await _shown(own_api, b'"Running"')
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", own_api.port, ssl=own_api.client_context(), server_hostname="127.0.0.1"
    )
    writer.write(b"GET /containerLogs/ns/p1/c1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    assert await asyncio.to_thread(own_api.stop, signal.SIGTERM, 12) == 0
    assert "Traceback" not in own_api.log()
    writer.transport.abort()
