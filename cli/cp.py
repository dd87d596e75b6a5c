"""`podbus cp`: files to and from a container, through its own tar."""

from __future__ import annotations

import argparse
import asyncio
import os
import tarfile
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from cli.client import ClientError, client_of, target_of
from cli.console import complain
from cli.exec import CommandFailed, run_command
from cli.get import DEFAULT_NAMESPACE, NotFound, find_pod, list_pods
from cli.logs import container_of

_CHUNK = 256 << 10


@dataclass(frozen=True)
class Place:
    """A path here (`pod` is "") or in a pod."""

    path: str
    pod: str = ""
    namespace: str = ""


def cp(arguments: argparse.Namespace) -> int:
    """The command."""
    try:
        source, target = parse_place(arguments.source), parse_place(arguments.target)
        if bool(source.pod) == bool(target.pod):
            raise ValueError("one of source and target must be in a pod ([NS/]POD:PATH), the other a path here")
        remote = source if source.pod else target
        namespace = remote.namespace or arguments.namespace or DEFAULT_NAMESPACE
        pod = find_pod(list_pods(client_of(arguments.data)), namespace, remote.pod)
        meta, container = pod["metadata"], container_of(pod, arguments.container)
        path = f"/exec/{meta['namespace']}/{meta['name']}/{container}"
        copy = _fetch if source.pod else _bring
        complaints = copy(target_of(arguments.data), path, source.path, target.path)
    except (ClientError, NotFound, CommandFailed, ValueError, OSError, tarfile.TarError) as error:
        complain([str(error)])
        return 1
    if complaints:
        complain([complaints])
        return 1
    return 0


def parse_place(text: str) -> Place:
    """`POD:PATH`, `NS/POD:PATH`, or a path here: one with a slash, dot or nothing before its colon is. Raises
    ValueError."""
    before, colon, path = text.partition(":")
    if not colon or before.startswith((".", "/")) or not before:
        return Place(text)
    namespace, slash, pod = before.rpartition("/")
    if "/" in namespace:
        return Place(text)
    if not path or not pod:
        raise ValueError(f"{text!r}: a path in a pod is [NS/]POD:PATH")
    return Place(path, pod, namespace if slash else "")


def _bring(target: Any, path: str, source: str, wanted: str) -> str:
    """A file or directory from here; what tar complained of, "" = nothing."""
    if not Path(source).exists():
        raise ValueError(f"{source}: no such file or directory")
    into_directory = wanted.endswith("/")
    place = PurePosixPath(wanted)
    name = Path(source).resolve().name if into_directory else place.name
    directory = str(place if into_directory else place.parent)
    said = bytearray()

    def feed(take: Callable[[bytes], Awaitable[None]]) -> None:
        _in_thread(take, lambda stream: _pack(stream, source, name))

    def out(_: int, data: bytes) -> None:
        said.extend(data)

    code = asyncio.run(
        run_command(target, path, ["tar", "-xmf", "-", "-C", directory or "."], stdin=True, out=out, feed=feed)
    )
    return _told(said, code)


def _fetch(target: Any, path: str, source: str, wanted: str) -> str:
    """A file or directory to here; what tar complained of, "" = nothing."""
    place = PurePosixPath(source.rstrip("/") or "/")
    goal = Path(wanted)
    if wanted.endswith("/") or goal.is_dir():
        goal = goal / place.name
    read_end, write_end = os.pipe()
    failure: list[Exception] = []

    def unpack() -> None:
        with os.fdopen(read_end, "rb") as stream:
            try:
                _unpack(stream, place.name, goal)
            except (OSError, tarfile.TarError, ValueError) as error:
                failure.append(error)
            while stream.read(_CHUNK):  # or tar would wait for ever
                pass

    said = bytearray()
    reader = threading.Thread(target=unpack, name="unpack")
    reader.start()

    def out(fd: int, data: bytes) -> None:
        if fd == 2:
            said.extend(data)
            return
        while data:
            data = data[os.write(write_end, data) :]

    command = ["tar", "-cf", "-", "-C", str(place.parent), place.name]
    try:
        code = asyncio.run(run_command(target, path, command, out=out))
    finally:
        os.close(write_end)
        reader.join()
    if complaint := _told(said, code):
        return complaint
    return str(failure[0]) if failure else ""


def _told(said: bytearray, code: int) -> str:
    text = said.decode(errors="replace").strip()
    return "" if not code else text or f"tar ended with {code}"


class _Pipe:
    """Where tarfile writes: handed on piece by piece, at the taker's pace."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take

    def write(self, data: bytes) -> int:
        self._take(bytes(data))
        return len(data)


def _in_thread(take: Callable[[bytes], Awaitable[None]], work: Callable[[Any], None]) -> None:
    loop = asyncio.get_running_loop()

    async def taken(data: bytes) -> None:
        await take(data)

    def hand_on(data: bytes) -> None:
        asyncio.run_coroutine_threadsafe(taken(data), loop).result()

    def run() -> None:
        try:
            work(_Pipe(hand_on))
        finally:
            hand_on(b"")

    threading.Thread(target=run, name="pack", daemon=True).start()


def _pack(stream: Any, source: str, name: str) -> None:
    with tarfile.open(fileobj=stream, mode="w|", bufsize=_CHUNK) as archive:
        archive.add(source, arcname=name)


def _unpack(stream: IO[bytes], name: str, goal: Path) -> None:
    """`name` of the archive becomes `goal`. A link or a path that would lead out of it is refused by tarfile's filter.
    Raises OSError, TarError, ValueError."""
    with tarfile.open(fileobj=stream, mode="r|", bufsize=_CHUNK) as archive:
        for member in archive:
            inside = PurePosixPath(member.name)
            if inside.parts[:1] != (name,):
                raise ValueError(f"tar sent {member.name!r}, which wasn't asked for")
            member.name = str(PurePosixPath(goal.name, *inside.parts[1:]))
            _extract(archive, member, goal.parent)


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, directory: Path) -> None:
    if hasattr(tarfile, "data_filter"):
        archive.extract(member, directory, filter="data")
        return
    # Python before 3.11.4 can't tell whether a link leads out
    if not (member.isfile() or member.isdir()) or ".." in PurePosixPath(member.name).parts:
        raise ValueError(f"{member.name}: only files and directories can be copied with this version of Python")
    archive.extract(member, directory)
