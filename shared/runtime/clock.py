"""Time as an argument: cores get `now`, shells get a Clock."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Wall clock, seconds since the epoch."""
        ...

    def boot_seconds(self) -> float:
        """Seconds since boot, suspend included; never steps."""
        ...

    def boot_id(self) -> str:
        """Changes with each boot."""
        ...


class SystemClock:
    """The real one."""

    def now(self) -> float:
        return time.time()

    def boot_seconds(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def boot_id(self) -> str:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
