"""CommandRunner over Docker Engine: the commands of exec probes and hooks.

A command that runs for long holds no thread: its output comes over a socket of the loop. The engine has no call that
ends an exec, so its process is killed by its pid: the worker must see the host's pids.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from services.podworker.adapters.docker_calls import DockerCalls
from services.podworker.adapters.docker_hijack import hijack
from services.podworker.adapters.process_tree import kill_tree
from services.podworker.adapters.secret_values import SecretFiles, secret_values
from services.podworker.core.masking import masked
from services.podworker.ports import MAX_OUTPUT_BYTES, ExecResult, RuntimeRefused, RuntimeUnavailable
from shared.streams.channels import ChannelReader

if TYPE_CHECKING:
    from docker import APIClient

_log = logging.getLogger("podbus.podworker.docker_exec")

Result = TypeVar("Result")

STARTS_AT_A_TIME = 4
"""Measured: 2 cores start 46 commands a second with 4 at a time, and not more with 8."""
START_SECONDS = 0.2
"""A start takes 40 ms, under load up to 200: what runs longer holds no place among the starts any more."""
END_TRIES = 100
END_PAUSE_SECONDS = 0.05
"""So often a command that is to be ended is looked at: it may only be about to start."""
_REFUSED = "ExecError"
_CHUNK_BYTES = 64 << 10
_LONGEST_PAUSE_SECONDS = 1.0


class DockerCommands:
    """CommandRunner (services.podworker.ports). Its short calls have threads of their own."""

    def __init__(self, secret_files: SecretFiles, base_url: str | None = None) -> None:
        """`secret_files`: their contents are kept out of what a failed command wrote, since that is told in events."""
        self._secret_files = secret_files
        self._calls = DockerCalls("docker-exec", STARTS_AT_A_TIME, base_url)
        self._starts = asyncio.Semaphore(STARTS_AT_A_TIME)
        self._ends: set[asyncio.Task[None]] = set()
        self._told_unseen = False

    def close(self) -> None:
        self._calls.close()

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float | None) -> ExecResult:
        await self._starts.acquire()
        place = _Place(self._starts)
        timer = asyncio.get_running_loop().call_later(START_SECONDS, place.give_back)
        output = bytearray()
        try:
            exec_id = await self._call(lambda client: _create(client, container_id, command))
            try:
                async with asyncio.timeout(seconds):
                    await self._read(exec_id, output)
                    code = await self._exit_code(exec_id)
            except TimeoutError:
                await self._end(exec_id)
                return ExecResult(exit_code=None, output=await self._without_secrets(container_id, output))
            except asyncio.CancelledError:
                await self._end(exec_id)
                raise
            told = await self._without_secrets(container_id, output) if code else bytes(output)
            return ExecResult(exit_code=code, output=told)
        finally:
            timer.cancel()
            place.give_back()

    async def _without_secrets(self, container_id: str, output: bytearray) -> bytes:
        if not output:
            return b""
        inspect = await self._call(lambda client: client.inspect_container(container_id))
        text = output.decode("utf-8", "surrogateescape")
        return masked(text, secret_values(inspect, self._secret_files)).encode("utf-8", "surrogateescape")

    async def _read(self, exec_id: str, output: bytearray) -> None:
        """Start it, and take in what it writes up to the cap, both streams in the engine's order; until its end."""
        body: dict[str, object] = {"Detach": False, "Tty": False}
        reader, writer = await hijack(self._calls.base_url, f"/exec/{exec_id}/start", body, _REFUSED)
        frames = ChannelReader()
        try:
            while data := await reader.read(_CHUNK_BYTES):
                for _, part, _ in frames.feed(data):
                    output += part[: MAX_OUTPUT_BYTES - len(output)]
        except ConnectionError as error:
            raise RuntimeUnavailable(f"the container engine went away: {error}") from error
        finally:
            writer.close()

    async def _exit_code(self, exec_id: str) -> int:
        """Mostly known at once; a command may also close its output and go on."""
        pause = 0.01
        while True:
            try:
                found = await self._call(lambda client: client.exec_inspect(exec_id))
            except RuntimeRefused as error:  # a new engine knows nothing of it: what became of it can't be told
                raise RuntimeUnavailable(f"the container engine has lost a command: {error}") from error
            if not found.get("Running") and found.get("ExitCode") is not None:
                return int(found["ExitCode"])
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _end(self, exec_id: str) -> None:
        """Goes on also when the caller doesn't wait any longer."""
        task = asyncio.create_task(self._kill(exec_id))
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)
        await asyncio.shield(task)

    async def _kill(self, exec_id: str) -> None:
        for _ in range(END_TRIES):
            try:
                left = await self._call(lambda client: _kill_exec(client, exec_id))
            except (RuntimeUnavailable, RuntimeRefused):
                return  # with its container, or out of reach
            if left == "gone":
                return
            if left == "unseen":
                break
            await asyncio.sleep(END_PAUSE_SECONDS)
        if not self._told_unseen:
            self._told_unseen = True
            _log.warning("a command that should end runs on: its process can't be seen or ended here (told once)")

    async def _call(self, call: Callable[[APIClient], Result]) -> Result:
        from docker.errors import APIError

        try:
            return await self._calls.run(call)
        except APIError as error:
            raise RuntimeRefused(_REFUSED, error.explanation or str(error)) from error


class _Place:
    """Among the starts: given back once."""

    def __init__(self, starts: asyncio.Semaphore) -> None:
        self._starts: asyncio.Semaphore | None = starts

    def give_back(self) -> None:
        if self._starts is not None:
            self._starts.release()
            self._starts = None


def _create(client: APIClient, container_id: str, command: Sequence[str]) -> str:
    return str(client.exec_create(container_id, list(command), stdout=True, stderr=True)["Id"])


def _kill_exec(client: APIClient, exec_id: str) -> Literal["gone", "left", "unseen"]:
    """ "left": look again."""
    found: dict[str, Any] = client.exec_inspect(exec_id)
    pid = int(found.get("Pid") or 0)
    if not found.get("Running"):
        # without an exit code it wasn't started yet, though it may have been asked for
        return "gone" if found.get("ExitCode") is not None else "left"
    if pid and not kill_tree(pid):
        # it may have ended between the two
        return "left" if not client.exec_inspect(exec_id).get("Running") else "unseen"
    return "left"
