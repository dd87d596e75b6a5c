"""Is the machine quiet, and what machine is it?"""

from __future__ import annotations

import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.engine import RawEngine
from bench.processes import busy_seconds

LOOK_SECONDS = 2.0
QUIET_PERCENT = 15.0
"""Of one core: what a machine does beside the benchmark that we call quiet."""


def busy_percent(seconds: float = LOOK_SECONDS) -> float:
    """What all CPUs together do, in percent of one core, while we only wait."""
    began, before = time.monotonic(), busy_seconds()
    time.sleep(seconds)
    return 100 * (busy_seconds() - before) / (time.monotonic() - began)


def wait_until_quiet(patience: float) -> float:
    """Wait at most `patience` seconds for two quiet looks in a row; what the last one showed (percent of a core)."""
    until = time.monotonic() + patience
    quiet = 0
    while True:
        busy = busy_percent()
        quiet = quiet + 1 if busy <= QUIET_PERCENT else 0
        if quiet == 2 or time.monotonic() > until:
            return busy


def load_average() -> float:
    return os.getloadavg()[0]


def about(engine: RawEngine) -> dict[str, object]:
    """Date, machine, versions."""
    version = engine.json("GET", "/version")
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count() or 0,
        "memory_mb": int(memory.split()[1]) // 1024,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "engine": version["Version"],
        "load": load_average(),
    }
