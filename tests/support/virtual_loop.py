"""An event loop whose time passes at once: timers fire in order, and nothing waits for them."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Only for code without real I/O: what a socket or a thread would do takes no virtual time."""

    def __init__(self, start: float) -> None:
        self.now = start
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self.now


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everything waits for ever")
        ready = super().select(0)
        if not ready and timeout > 0:
            self._loop.now += timeout
        return ready


def run_virtually(main: Callable[[], Coroutine[Any, Any, T]], *, start: float = 1000.0) -> T:
    """`asyncio.run` on a loop of its own with virtual time."""
    loop = VirtualLoop(start)
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()
