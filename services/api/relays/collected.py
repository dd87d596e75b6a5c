"""A command whose output is taken in whole: /run, which answers only when it has ended."""

from __future__ import annotations

import asyncio

from services.api.relays.command import WorkerChannels
from services.api.relays.connection import OpenTransport
from shared.contracts.streams import StreamStatus
from shared.streams.channels import STDOUT

MAX_OUTPUT_BYTES = 16 << 20


class CollectedCommand:
    """stdout, then stderr, each up to a bound."""

    def __init__(self) -> None:
        self._out = bytearray()
        self._err = bytearray()
        self._ended: asyncio.Future[StreamStatus] = asyncio.get_running_loop().create_future()

    async def run(self, open_worker: OpenTransport[WorkerChannels]) -> tuple[StreamStatus, bytes]:
        """How it ended, and its output. Raises OwnerUnavailable."""
        worker, _ = await open_worker(lambda: WorkerChannels(self))
        try:
            status = await self._ended
        finally:
            worker.close()
        return status, bytes(self._out + self._err)

    # -- what WorkerChannels calls ------------------------------------------------------------------------

    def touch(self) -> None:
        """Nobody waits for a silent command."""

    def output(self, channel: int, part: memoryview) -> None:
        into = self._out if channel == STDOUT else self._err
        into += part[: max(0, MAX_OUTPUT_BYTES - len(into))]

    def flush(self) -> None:
        """Kept until the end."""

    def finish(self, status: StreamStatus) -> None:
        if not self._ended.done():
            self._ended.set_result(status)

    def hold_input(self, hold: bool) -> None:
        """There is none."""
