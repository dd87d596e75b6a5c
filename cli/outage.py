"""A cause outside a process that keeps it from working, as a full disk does nats-server: told once, not at each
restart."""

from __future__ import annotations

from collections.abc import Callable

from shared.runtime.backoff import Delays

FIRST_SECONDS = 30.0
MOST_SECONDS = 300.0
"""Between two kills of a process that hangs while the cause lasts."""


class Outage:
    """Of one process. Instants are seconds of time.monotonic()."""

    def __init__(self, blocked_by: Callable[[], str] | None, delays: Delays | None = None) -> None:
        """`blocked_by`: the cause for people, "" = there is none; an OSError is none."""
        self._blocked_by = blocked_by
        self._delays = delays or Delays(FIRST_SECONDS, MOST_SECONDS)
        self._told = ""
        self._since = 0.0
        self._spared_until = float("-inf")

    @property
    def is_on(self) -> bool:
        """It has been told, and nothing has worked since."""
        return bool(self._told)

    def hangs(self, now: float) -> tuple[bool, str]:
        """The process doesn't answer: whether to kill it, and what to say ("" = nothing)."""
        cause = self._cause()
        if not cause:
            self._spared_until = float("-inf")
            return True, "" if self.is_on else "hangs: killed"
        said = self._begin(cause, now, "hangs")
        if now < self._spared_until:
            return False, said
        self._spared_until = now + self._delays.next()
        return True, said

    def ended(self, now: float, how: str) -> str:
        """The process has ended; what to say instead of that it did. "" = there's no cause, say so."""
        cause = self._cause()
        return self._begin(cause, now, how) if cause and not self.is_on else ""

    def works(self, now: float) -> str:
        """The process has answered: what to say, "" = nothing."""
        if not self._told or self._cause():
            return ""
        said = f"works again after {now - self._since:.0f} s; {self._told}"
        self._told, self._spared_until = "", float("-inf")
        self._delays.reset()
        return said

    def _begin(self, cause: str, now: float, what: str) -> str:
        if self._told:
            return ""
        self._told, self._since = cause, now
        return f"{what}: {cause}; it's started again and again, ever more seldom, until that's over"

    def _cause(self) -> str:
        if self._blocked_by is None:
            return ""
        try:
            return self._blocked_by()
        except OSError:
            return ""
