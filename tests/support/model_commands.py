"""Commands inside the model engine's containers (CommandRunner).

sh -c "exit N"        ends with N at once
sh -c "echo TEXT"     says TEXT and ends with 0
missing               can't be started: ends with 126 and the engine's words
anything else         runs until `end_commands`, its container's end, or the caller's patience ends
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from services.podworker.ports import ExecResult, RuntimeRefused

KILLED = 137


@dataclass(eq=False)
class ModelCommand:
    container_id: str
    command: tuple[str, ...]
    exit_code: int | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class ModelCommands:
    """`check` raises when the engine is away, `is_running` tells of a container by its id."""

    def __init__(self, check: Callable[[], None], is_running: Callable[[str], bool]) -> None:
        self._check = check
        self._is_running = is_running
        self.started: list[tuple[str, ...]] = []
        self.running: list[ModelCommand] = []

    def end(self, code: int = 0, container_id: str | None = None) -> None:
        """All that run (in that container) end so."""
        for command in list(self.running):
            if container_id in (None, command.container_id):
                command.exit_code = code
                command.ended.set()

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float | None) -> ExecResult:
        self._check()
        if not self._is_running(container_id):
            raise RuntimeRefused("ExecError", f"Container {container_id} is not running")
        self.started.append(tuple(command))
        match tuple(command):
            case ("sh", "-c", line) if line.startswith("exit "):
                return ExecResult(exit_code=int(line.removeprefix("exit ")), output=b"")
            case ("sh", "-c", line) if line.startswith("echo "):
                return ExecResult(exit_code=0, output=f"{line.removeprefix('echo ')}\n".encode())
            case ("missing", *_):
                return ExecResult(exit_code=126, output=b'OCI runtime exec failed: "missing": not found in $PATH')
        return await self._run(ModelCommand(container_id, tuple(command)), seconds)

    async def _run(self, command: ModelCommand, seconds: float | None) -> ExecResult:
        self.running.append(command)
        try:
            async with asyncio.timeout(seconds):
                await command.ended.wait()
        except TimeoutError:
            return ExecResult(exit_code=None, output=b"")
        finally:
            self.running.remove(command)
        return ExecResult(exit_code=command.exit_code, output=b"")
