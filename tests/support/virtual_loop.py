"""An event loop whose time jumps to the next timer whenever nothing is left to do: hours take milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.BaseSelector):
    """Never waits: what the loop would have slept is added to its time."""

    def __init__(self, start: float) -> None:
        self._real = selectors.DefaultSelector()
        self.now = start

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if not ready:
            assert timeout is not None, "everything waits for everything"
            self.now += max(0.0, timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """For code without threads and sockets: they would have no time to answer."""

    def __init__(self, start: float = 1000.0) -> None:
        self._jumping = _Jumping(start)
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtually(main: Callable[[], Coroutine[Any, Any, T]], *, start: float = 1000.0) -> T:
    """`asyncio.run` on a loop of its own, whose time begins at `start`."""
    loop = VirtualLoop(start)
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()
