"""Interactive use of containers over Docker: commands and attachments whose bytes are passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from services.podworker.adapters.docker_calls import DockerCalls
from services.podworker.adapters.docker_hijack import hijack
from services.podworker.adapters.stream_pump import EngineReader, pump
from services.podworker.ports import ContainerSession, RuntimeRefused
from shared.contracts.streams import ExecOptions
from shared.streams.channels import STDOUT, frame

if TYPE_CHECKING:
    from docker import APIClient

_THREADS = 4
_EXEC = "ExecError"


class DockerSessions:
    """ContainerSessions (services.podworker.ports). Its short calls have threads of their own."""

    def __init__(self, base_url: str | None = None) -> None:
        self._calls = DockerCalls("docker-sessions", _THREADS, base_url)

    def close(self) -> None:
        self._calls.close()

    async def exec(self, container_id: str, options: ExecOptions) -> ContainerSession:
        def create(client: APIClient) -> str:
            made = client.exec_create(
                container_id,
                options.command,
                stdin=options.stdin,
                stdout=options.stdout,
                stderr=options.stderr and not options.tty,
                tty=options.tty,
            )
            return str(made["Id"])

        from docker.errors import APIError

        try:
            exec_id = await self._calls.run(create)
        except APIError as error:
            raise RuntimeRefused(_EXEC, error.explanation or str(error)) from error
        body: dict[str, object] = {"Detach": False, "Tty": options.tty}
        reader, writer = await hijack(self._calls.base_url, f"/exec/{exec_id}/start", body, _EXEC)

        async def resize(width: int, height: int) -> None:
            await self._ignoring_refusals(lambda client: client.exec_resize(exec_id, height=height, width=width))

        async def exit_code() -> int | None:
            found = await self._calls.run(lambda client: client.exec_inspect(exec_id))
            code = found.get("ExitCode")
            return None if code is None or found.get("Running") else int(code)

        return _Session(reader, writer, options.tty, resize, exit_code)

    async def attach(self, container_id: str, options: ExecOptions) -> ContainerSession:
        wanted = {
            "stream": 1,
            "stdin": int(options.stdin),
            "stdout": int(options.stdout),
            "stderr": int(options.stderr and not options.tty),
        }
        path = f"/containers/{container_id}/attach?{urlencode(wanted)}"
        reader, writer = await hijack(self._calls.base_url, path, None, "AttachError")

        async def resize(width: int, height: int) -> None:
            await self._ignoring_refusals(lambda client: client.resize(container_id, height=height, width=width))

        async def exit_code() -> int | None:
            return 0  # kubelet: the end of an attachment is a success, whatever became of the process

        return _Session(reader, writer, options.tty, resize, exit_code)

    async def _ignoring_refusals(self, call: Callable[[APIClient], object]) -> None:
        """The size of a terminal that has just gone is no error."""
        from docker.errors import APIError

        try:
            await self._calls.run(call)
        except APIError:
            return


class _Session:
    """ContainerSession (services.podworker.ports)."""

    def __init__(
        self,
        reader: EngineReader,
        writer: asyncio.StreamWriter,
        is_raw: bool,
        resize: Callable[[int, int], Awaitable[None]],
        exit_code: Callable[[], Awaitable[int | None]],
    ) -> None:
        self._reader = reader
        self.writer = writer
        self.is_raw = is_raw
        self.resize = resize
        self.exit_code = exit_code

    async def copy_output(self, target: asyncio.StreamWriter) -> None:
        await pump(self._reader, self.writer, target, _around if self.is_raw else None)


def _around(data: bytes) -> bytes:
    """A terminal's bytes come bare; all else comes in the engine's frames, which are ours."""
    return frame(STDOUT, data)
