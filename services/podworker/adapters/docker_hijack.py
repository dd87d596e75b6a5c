"""A connection to the engine that stops being HTTP: the bytes of an exec or of an attached container.

On the loop, without a thread: the `docker` package can only hand out a blocking socket.
"""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

from services.podworker.adapters.stream_pump import EngineReader
from services.podworker.ports import RuntimeRefused, RuntimeUnavailable

BUFFER_BYTES = 256 << 10
_ANSWER_SECONDS = 60.0
_LARGEST_ANSWER = 64 << 10


async def hijack(
    base_url: str, path: str, body: dict[str, object] | None, reason: str
) -> tuple[EngineReader, asyncio.StreamWriter]:
    """POST `path` (with its query, without a version) and take the connection over.

    Raises RuntimeRefused(`reason`, the engine's own text), RuntimeUnavailable.
    """
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await _connect(base_url)
            try:
                await _ask(reader, writer, path, body, reason)
            except BaseException:
                writer.close()
                raise
    except (OSError, EOFError, TimeoutError) as error:
        raise RuntimeUnavailable(f"the container engine at {base_url} doesn't answer: {error!r}") from error
    return reader, writer


async def _connect(base_url: str) -> tuple[EngineReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = EngineReader(limit=BUFFER_BYTES, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    url = urlsplit(base_url)
    transport: asyncio.Transport
    if url.scheme == "unix":
        transport, _ = await loop.create_unix_connection(lambda: protocol, url.path)
    else:
        transport, _ = await loop.create_connection(lambda: protocol, url.hostname or "", url.port or 2375)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: dict[str, object] | None, reason: str
) -> None:
    payload = b"" if body is None else json.dumps(body).encode()
    writer.write(
        f"POST {path} HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n".encode()
        + payload
    )
    answer = await reader.readuntil(b"\r\n\r\n")
    status = int(answer.split(b" ", 2)[1])
    if status in (101, 200):
        return
    raise RuntimeRefused(reason, await _refusal(reader, answer))


async def _refusal(reader: asyncio.StreamReader, answer: bytes) -> str:
    """The engine's text; the connection is of no more use."""
    length = next(
        (int(line.split(b":")[1]) for line in answer.lower().splitlines() if line.startswith(b"content-length:")), 0
    )
    text = await reader.readexactly(min(length, _LARGEST_ANSWER))
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text.decode(errors="replace") or answer.split(b"\r\n", 1)[0].decode(errors="replace")
