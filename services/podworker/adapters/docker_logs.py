"""A container's log out of the engine, as frames; each stream in a thread of its own pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.podworker.adapters.docker_calls import DockerCalls, connection_errors
from services.podworker.adapters.json_log_file import read_log
from services.podworker.adapters.log_frames import EachLineOnce, open_log
from services.podworker.ports import LogLost
from shared.contracts.streams import LogOptions

if TYPE_CHECKING:
    from docker import APIClient

MAX_STREAMS = 64
_CHUNKS_AHEAD = 8


class DockerLogs:
    """Streams don't share threads with lifecycle calls, and can't starve them."""

    def __init__(self, base_url: str | None = None) -> None:
        self._calls = DockerCalls("docker-logs", 1, base_url)
        self._threads = ThreadPoolExecutor(MAX_STREAMS, thread_name_prefix="logs")

    def close(self) -> None:
        self._calls.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def read(self, container_id: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log's bytes, both streams in the engine's order. A slow consumer slows the engine's side down.

        Raises LogLost when the container is gone or the engine went away.
        """
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(_CHUNKS_AHEAD)
        stopped = False
        source: list[Any] = []

        def put(item: bytes | Exception | None) -> None:
            asyncio.run_coroutine_threadsafe(queue.put(item), loop).result()

        def pump_file(client: APIClient) -> bool:
            """False when the log has to come through the engine."""
            path = None if options.follow else _file_of(client, container_id)
            if path is None:
                return False
            pieces = read_log(path, options)
            try:
                piece = next(pieces, None)
            except OSError:
                return False  # in a container of its own the worker doesn't see the engine's files
            while piece is not None and not stopped:
                put(piece)
                piece = next(pieces, None)
            put(None)
            return True

        def pump() -> None:
            try:
                client = self._calls.client()
                if pump_file(client):
                    return
                frames, is_tty = open_log(
                    client, container_id, options, timestamps=options.timestamps or options.follow
                )
                source.append(frames)
                once = EachLineOnce(with_times=options.timestamps) if options.follow and not is_tty else None
                for frame in frames:
                    if stopped:
                        return
                    if shown := once.take(frame) if once is not None else frame:
                        put(shown)
                put(None)
            except connection_errors() as error:
                if not stopped:
                    put(LogLost(str(getattr(error, "explanation", None) or error)))
            except (ValueError, AttributeError, OSError) as error:  # closing the answer from outside ends so
                if not stopped:
                    put(LogLost(str(error)))

        pumping = loop.run_in_executor(self._threads, pump)
        left = options.limit_bytes
        try:
            while left is None or left > 0:
                item = await queue.get()
                if item is None:
                    return
                if isinstance(item, Exception):
                    raise item
                chunk = item if left is None else item[:left]
                if left is not None:
                    left -= len(chunk)
                yield chunk
        finally:
            stopped = True
            for frames in source:
                await loop.run_in_executor(None, _close, frames)
            while not queue.empty():
                queue.get_nowait()
            pumping.cancel()


def _file_of(client: APIClient, container_id: str) -> Path | None:
    """Where the engine writes the container's log; None with another log driver."""
    found = client.inspect_container(container_id)
    kind = ((found.get("HostConfig") or {}).get("LogConfig") or {}).get("Type")
    return Path(found["LogPath"]) if kind == "json-file" and found.get("LogPath") else None


def _close(frames: Any) -> None:
    """End a follow from another thread: docker's CancellableStream shuts its socket down."""
    try:
        frames.close()
    except (OSError, ValueError, AttributeError):
        return
