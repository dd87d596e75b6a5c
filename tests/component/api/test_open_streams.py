"""Streams that are open: what a client that doesn't read costs, and how they end with the process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from shared.contracts.registry import STREAM
from shared.contracts.streams import StreamStatus
from shared.streams.channels import STATUS, STDOUT, frame
from tests.component.api.other_services import OtherServices, running_status
from tests.component.api.process import ApiProcess
from tests.support.eventually import eventually_async
from tests.support.upgraded import RemoteCommand, SpdyLink, upgrade

pytestmark = pytest.mark.nats

FORWARD = "/portForward/ns/p1"
EXEC = "/exec/ns/p1/c1?command=yes&output=1"
WEBSOCKET = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Protocol: v4.channel.k8s.io",
]
_BLOCK = 256 << 10


async def _pod(api: ApiProcess, others: OtherServices) -> None:
    await others.want("p1")
    await others.report("p1", running_status())
    await others.answer(STREAM)

    async def shown() -> bool:
        return b"containerStatuses" in (await api.ask_async("/pods")).body

    await eventually_async(shown, within=10)


def _ca(api: ApiProcess) -> Path:
    return api.paths.pki / "ca.crt"


@pytest.mark.parametrize("kind", ["spdy", "websocket"])
async def test_a_client_that_does_not_read_its_command_stalls_only_itself(
    api: ApiProcess, others: OtherServices, kind: str
) -> None:
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while True:
            writer.write(frame(STDOUT, b"y" * _BLOCK))
            await writer.drain()
            sent += _BLOCK

    others.log_handler = pour
    await _pod(api, others)
    before = api.resident_bytes()
    writer = await _open_without_reading(api, kind)
    stalled = -1

    async def stands_still() -> bool:
        nonlocal stalled
        stalled, same = sent, sent == stalled
        return same and sent > 0

    await eventually_async(stands_still, within=10, every=0.1)
    assert sent < 32 << 20  # socket buffers; the rest waits in the container
    assert api.resident_bytes() - before < 24 << 20
    assert (await api.ask_async("/pods")).status == 200
    writer.transport.abort()


async def _open_without_reading(api: ApiProcess, kind: str) -> asyncio.StreamWriter:
    """Its StreamReader takes two MiB, and then the socket is left alone."""
    if kind == "websocket":
        _, _reader, writer = await upgrade(api.port, _ca(api), "admin-token", "GET", EXEC, WEBSOCKET)
        return writer
    link = await SpdyLink.connect(api.port, _ca(api), "admin-token", EXEC)
    await RemoteCommand.start(link, "stdout")
    return link.writer


async def test_sigterm_ends_a_command_a_forward_and_a_log_each_in_its_own_way(
    own_api: ApiProcess, own_others: OtherServices
) -> None:
    logged, gone = asyncio.Event(), 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal gone
        kind = own_others.commands[-1].kind
        if kind == "logs":
            writer.write(b"line\n")
            logged.set()
        elif kind == "portForward":
            writer.write(frame(STATUS, msgspec.json.encode(StreamStatus(outcome="ended"))) + b"said")
        else:
            writer.write(frame(STDOUT, b"said"))
        await reader.read()
        gone += 1

    own_others.log_handler = serve
    await _pod(own_api, own_others)
    following = asyncio.create_task(own_api.ask_async("/containerLogs/ns/p1/c1?follow=true"))
    await asyncio.wait_for(logged.wait(), 10)
    ca, port = _ca(own_api), own_api.port
    spdy = await SpdyLink.connect(port, ca, "admin-token", EXEC)
    command = await RemoteCommand.start(spdy, "stdout")
    await spdy.until(lambda: command.got("stdout") == b"said")
    forward = await SpdyLink.connect(port, ca, "admin-token", FORWARD, protocols=("portforward.k8s.io",))
    error = await forward.open(streamtype="error", port="80", requestid="1")
    data = await forward.open(streamtype="data", port="80", requestid="1")
    await forward.until(lambda: bytes(forward.stream(data).data) == b"said")
    _, reader, _writer = await upgrade(port, ca, "admin-token", "GET", EXEC, WEBSOCKET)
    assert b"said" in await asyncio.wait_for(reader.readuntil(b"said"), 10)

    stopping = asyncio.create_task(asyncio.to_thread(own_api.stop))
    assert (await following).body == b"line\n"  # a body without its last chunk would be an error
    await spdy.until_end()
    assert spdy.client.gone_away
    assert b"podbus is stopping" in command.got("error")
    await forward.until_end()
    assert forward.client.gone_away
    assert b"podbus is stopping" in forward.stream(error).data
    rest = await asyncio.wait_for(reader.read(), 10)
    assert b"podbus is stopping" in rest
    assert rest[-4:-2] == b"\x88\x02"  # a close frame with its code
    assert await stopping == 0
    await eventually_async(lambda: gone == 4, within=10)
    assert "Traceback" not in own_api.log()
