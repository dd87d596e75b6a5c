"""`podbus exec`: a command in a container, its input, output and exit code those of this process."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial

from cli.client import ClientError, Target, client_of, target_of
from cli.console import complain
from cli.get import DEFAULT_NAMESPACE, NotFound, find_pod, list_pods
from cli.logs import container_of
from cli.remote import REMOTE_COMMAND, RemoteStreams, connect
from cli.terminal import follow_size, raw_terminal, read_stdin, write_out

Output = Callable[[int, bytes], None]
"""(1 or 2, what the command wrote there)"""
Feed = Callable[[Callable[[bytes], Awaitable[None]]], None]
"""Gives stdin to its argument, piece by piece, b"" at the end; returns at once."""


class CommandFailed(Exception):
    """The command could not be run: the node's words."""


def exec_command(arguments: argparse.Namespace) -> int:
    """The command; its exit code is the one in the container."""
    if not arguments.words:
        complain(["no command: podbus exec POD -- COMMAND [ARGUMENT...]"])
        return 2
    with_tty = arguments.tty and sys.stdin.isatty()
    if arguments.tty and not with_tty:
        sys.stderr.write("podbus: no terminal is used: standard input is none\n")
    try:
        pod = find_pod(list_pods(client_of(arguments.data)), arguments.namespace or DEFAULT_NAMESPACE, arguments.pod)
        meta, container = pod["metadata"], container_of(pod, arguments.container)
        path = f"/exec/{meta['namespace']}/{meta['name']}/{container}"
        with raw_terminal() if with_tty else nullcontext():
            code = asyncio.run(
                run_command(
                    target_of(arguments.data), path, arguments.words, stdin=arguments.stdin, tty=with_tty, out=write_out
                )
            )
    except (ClientError, NotFound, CommandFailed) as error:
        complain([str(error)])
        return 1
    if code:
        sys.stderr.write(f"command terminated with exit code {code}\n")
    return code


async def run_command(
    target: Target,
    path: str,
    words: Sequence[str],
    *,
    stdin: bool = False,
    tty: bool = False,
    out: Output,
    feed: Feed = read_stdin,
) -> int:
    """The exit code. Raises ClientError, CommandFailed."""
    flags = {"output": True, "error": not tty, "input": stdin, "tty": tty}
    query = [("command", word) for word in words] + [(key, "1") for key, is_on in flags.items() if is_on]
    kinds: dict[int, int] = {}
    said = bytearray()

    def on_data(stream_id: int, data: bytes) -> None:
        if stream_id in kinds:
            out(kinds[stream_id], data)
        else:
            said.extend(data)

    streams = await connect(target, path, query, REMOTE_COMMAND, on_data)
    reading = asyncio.create_task(streams.run())
    try:
        opened = [await streams.open(streamtype="error")]
        stdin_id = await streams.open(streamtype="stdin") if stdin else None
        kinds[await streams.open(streamtype="stdout")] = 1
        if not tty:
            kinds[await streams.open(streamtype="stderr")] = 2
        if tty:
            _tell_size(streams, await streams.open(streamtype="resize"))
        if stdin_id is not None:
            feed(partial(_send_stdin, streams, stdin_id))
        await streams.ended(*opened, *kinds)
        if reading.done():
            reading.result()
    finally:
        streams.close()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    return _exit_code(bytes(said))


async def _send_stdin(streams: RemoteStreams, stream_id: int, data: bytes) -> None:
    await streams.send(stream_id, data, end=not data)


def _tell_size(streams: RemoteStreams, stream_id: int) -> None:
    tasks: set[asyncio.Task[None]] = set()

    def tell(width: int, height: int) -> None:
        text = json.dumps({"Width": width, "Height": height}).encode() + b"\n"
        task = asyncio.create_task(streams.send(stream_id, text))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    follow_size(tell)


def _exit_code(said: bytes) -> int:
    """Of the error stream's v1.Status. Raises CommandFailed."""
    try:
        status = json.loads(said)
    except ValueError as error:
        raise CommandFailed(said.decode(errors="replace") or "the connection ended before the command") from error
    if status.get("status") == "Success":
        return 0
    causes = (status.get("details") or {}).get("causes") or []
    code = next((cause["message"] for cause in causes if cause.get("reason") == "ExitCode"), "")
    if not code.isdigit():
        raise CommandFailed(status.get("message") or said.decode(errors="replace"))
    return int(code)
