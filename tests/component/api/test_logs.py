"""Logs: podworker's bytes, unread and in order, at the client's speed."""

from __future__ import annotations

import asyncio
import hashlib
import random

import pytest

from shared.contracts.registry import STREAM
from shared.kube.status import ContainerState, ContainerStatus, PodStatus, StateWaiting
from tests.component.api.other_services import CONTAINER, OtherServices, running_status
from tests.component.api.process import ApiProcess
from tests.support.eventually import eventually_async

pytestmark = pytest.mark.nats

HEAD = (
    "GET /containerLogs/ns/p1/c1{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer view-token\r\n"
    "Connection: close\r\n\r\n"
)


async def _running_pod(api: ApiProcess, others: OtherServices, status: PodStatus | None = None) -> None:
    await others.want("p1")
    await others.report("p1", status or running_status())
    await others.answer(STREAM)

    async def shown() -> bool:
        return (
            b'"p1"' in (await api.ask_async("/pods")).body
            and b"containerStatuses" in (await api.ask_async("/pods")).body
        )

    await eventually_async(shown, within=5)


async def _open(api: ApiProcess, query: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", api.port, ssl=api.client_context(), server_hostname="127.0.0.1", limit=1 << 20
    )
    writer.write(HEAD.format(query=query).encode())
    return reader, writer


async def _chunks(reader: asyncio.StreamReader):  # type: ignore[no-untyped-def]
    """The decoded body, piece by piece."""
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)


async def test_a_log_has_no_content_type_and_is_chunked(api: ApiProcess, others: OtherServices) -> None:
    async def two_lines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"one\ntwo\n")

    others.log_handler = two_lines
    await _running_pod(api, others)
    answer = await api.ask_async("/containerLogs/ns/p1/c1?tailLines=5&timestamps=true", user="view")
    assert (answer.status, answer.body) == (200, b"one\ntwo\n")
    assert answer.headers["transfer-encoding"] == "chunked"
    assert "content-type" not in answer.headers
    (command,) = others.commands
    assert (command.container_id, command.uid) == (CONTAINER, "uid-p1")
    assert (command.logs.tail_lines, command.logs.timestamps, command.logs.follow) == (5, True, False)


async def test_every_byte_arrives_and_a_slow_reader_costs_no_memory(api: ApiProcess, others: OtherServices) -> None:
    size, block = 96 << 20, random.Random(7).randbytes(1 << 20)
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while sent < size:
            writer.write(block)
            await writer.drain()
            sent += len(block)

    others.log_handler = pour
    await _running_pod(api, others)
    before = api.resident_bytes()
    reader, writer = await _open(api)
    await reader.readuntil(b"\r\n\r\n")
    seen, received, expected, peak = hashlib.sha256(), 0, hashlib.sha256(), 0
    stalled = -1

    async def stands_still() -> bool:
        nonlocal stalled
        stalled, same = sent, sent == stalled
        return same

    await eventually_async(stands_still, within=10, every=0.1)
    assert sent < 32 << 20  # socket buffers and a few of ours; the rest waits at podworker
    async for chunk in _chunks(reader):
        seen.update(chunk)
        received += len(chunk)
        peak = max(peak, api.resident_bytes())
    for _ in range(size // len(block)):
        expected.update(block)
    assert received == size
    assert seen.digest() == expected.digest()
    assert peak - before < 24 << 20
    writer.close()


async def test_a_followed_line_arrives_when_it_is_written(api: ApiProcess, others: OtherServices) -> None:
    go, gone = asyncio.Event(), asyncio.Event()

    async def follow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"first\n")
        await go.wait()
        writer.write(b"second\n")
        await reader.read()
        gone.set()

    others.log_handler = follow
    await _running_pod(api, others)
    reader, writer = await _open(api, "?follow=true")
    await reader.readuntil(b"\r\n\r\n")
    chunks = _chunks(reader)
    assert await anext(chunks) == b"first\n"
    go.set()
    assert await anext(chunks) == b"second\n"
    writer.transport.abort()
    await asyncio.wait_for(gone.wait(), 10)  # a client that went away is told to podworker


async def test_a_container_that_has_not_started_is_a_bad_request(api: ApiProcess, others: OtherServices) -> None:
    waiting = ContainerStatus(
        name="c1",
        state=ContainerState(waiting=StateWaiting(reason="ContainerCreating")),
        last_state=ContainerState(),
        ready=False,
        restart_count=0,
        image="busybox:1.36",
        image_id="",
        started=False,
    )
    await _running_pod(api, others, PodStatus(phase="Pending", container_statuses=[waiting], qos_class="BestEffort"))
    answer = await api.ask_async("/containerLogs/ns/p1/c1")
    assert answer.status == 400
    assert answer.body == b'container "c1" in pod "p1" is waiting to start: ContainerCreating'
    assert "content-type" not in answer.headers
    unknown = await api.ask_async("/containerLogs/ns/p1/c9")
    assert (unknown.status, unknown.body) == (404, b'container "c9" not found in pod "p1"')


@pytest.mark.parametrize(
    ("query", "status", "body"),
    [
        ("tailLines=-1", 422, b'{"message": "Invalid request."}'),
        ("limitBytes=0", 422, b'{"message": "Invalid request."}'),
        ("tailLines=abc", 400, b'{"message": "Unable to decode query."}'),
        ("sinceTime=bad", 400, b'{"message": "Unable to decode query."}'),
    ],
)
def test_a_wrong_parameter_is_refused_before_the_pod_is_looked_up(
    api: ApiProcess, query: str, status: int, body: bytes
) -> None:
    answer = api.ask(f"/containerLogs/ns/p1/c1?{query}")
    assert (answer.status, answer.body) == (status, body)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_without_a_worker_a_log_is_unavailable(api: ApiProcess, others: OtherServices) -> None:
    await others.want("p2")
    await others.report("p2", running_status())

    async def unavailable() -> bool:
        answer = await api.ask_async("/containerLogs/ns/p2/c1")
        return answer.status == 503 and b"no podworker answers" in answer.body

    await eventually_async(unavailable, within=5)
