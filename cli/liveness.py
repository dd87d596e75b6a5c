"""Does a process that runs still work? Asked again and again, each time from a short process of its own: an answer may
take seconds, and the supervisor's loop has none to spare."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from functools import partial

from cli.child import fork

PERIOD_SECONDS = 10.0
RETRY_SECONDS = 2.0
"""After a miss it's asked again soon."""
MISSES = 3
"""So many in a row and it hangs."""
LIMIT_SECONDS = 8
"""An asking process that lasts longer is ended by the kernel, which is a miss."""


class Liveness:
    """The questions to one process. Instants are seconds of time.monotonic()."""

    def __init__(self, alive: Callable[[], bool] | None) -> None:
        """`alive` runs in the asking process; an OSError is a miss. None = never asked."""
        self._alive = alive
        self._misses = 0
        self._is_watched = False
        self.due: float | None = None
        """When to ask; None = not now."""
        self.pid = 0
        """Of the asking process; 0 = none."""

    def begin(self, now: float) -> None:
        """The process is ready."""
        if self._alive is not None:
            self._misses, self._is_watched = 0, True
            self.due = now + PERIOD_SECONDS

    def end(self) -> None:
        """The process is gone, or is to end: what is still asked doesn't count."""
        self._is_watched = False
        self.due = None

    def ask(self, now: float, close: Iterable[int]) -> None:
        """If it's due. Raises OSError when no process can be started; then it's asked later."""
        if self._alive is None or self.due is None or now < self.due:
            return
        self.due = now + RETRY_SECONDS
        if self.pid == 0:
            self.pid = fork(partial(_ask, self._alive), output=None, close=close)
            self.due = None

    def answered(self, status: int, now: float) -> bool:
        """The asking process has ended with this status (0 = it works). True when the process that it asked hangs."""
        self.pid = 0
        if not self._is_watched:
            return False
        self._misses = self._misses + 1 if status else 0
        self.due = now + (RETRY_SECONDS if status else PERIOD_SECONDS)
        return self._misses >= MISSES


def _ask(alive: Callable[[], bool]) -> int:
    signal.alarm(LIMIT_SECONDS)
    try:
        return 0 if alive() else 1
    except OSError:
        return 1
