"""The local terminal of `podbus exec -t`: raw while the command runs, its size told to the other side."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import threading
import tty
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

_CHUNK = 32 << 10


@contextmanager
def raw_terminal() -> Iterator[None]:
    """Every key goes to the command, Ctrl-C too; afterwards the terminal is as it was. Nothing where stdin is none."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)


def follow_size(tell: Callable[[int, int], None]) -> None:
    """`tell(width, height)` now and at each change; nothing without a terminal."""
    if not sys.stdout.isatty():
        return

    def look() -> None:
        size = os.get_terminal_size(1)
        tell(size.columns, size.lines)

    asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, look)
    look()


def read_stdin(take: Callable[[bytes], Awaitable[None]]) -> None:
    """Hand stdin on, b"" at its end, at the taker's pace. In a thread: files and pipes can't all be waited for."""
    loop = asyncio.get_running_loop()

    async def taken(data: bytes) -> None:
        await take(data)

    def work() -> None:
        try:
            while True:
                data = os.read(0, _CHUNK)
                asyncio.run_coroutine_threadsafe(taken(data), loop).result()
                if not data:
                    return
        except (OSError, RuntimeError, asyncio.CancelledError):
            return  # the terminal is gone, or the command has ended

    threading.Thread(target=work, name="stdin", daemon=True).start()


def write_out(fd: int, data: bytes) -> None:
    """All of it, in order."""
    while data:
        data = data[os.write(fd, data) :]
