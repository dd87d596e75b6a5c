"""Is the loop turning? A thread outside it watches, and a file's age tells others.

The thread kills a process whose event loop hangs: a hung worker would keep its pods' slots for ever.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

log = logging.getLogger("podbus.health")

BEAT_SECONDS = 5.0
HANG_SECONDS = 15.0
DEAD_SECONDS = 60.0
EXIT_HUNG = 70

Check = Callable[[], str | None]
"""None = fine, else why not."""


class Watchdog:
    """Ends this process, with every thread's traceback, when `beat` wasn't called for HANG_SECONDS."""

    def __init__(self, hang_seconds: float = HANG_SECONDS) -> None:
        self._limit = hang_seconds
        self._last = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._last = time.monotonic()
        self._thread.start()

    def beat(self) -> None:
        self._last = time.monotonic()

    def stop(self) -> None:
        self._stop.set()

    def _watch(self) -> None:
        wakeup = self._limit / 5
        before = time.monotonic()
        while not self._stop.wait(wakeup):
            now = time.monotonic()
            if now - before > 2 * wakeup + 1:  # we were stopped ourselves (SIGSTOP, a frozen machine): start afresh
                self._last = now
            before = now
            if now - self._last > self._limit:
                sys.stderr.write(f"watchdog: the event loop hangs since {now - self._last:.0f} s, ending\n")
                faulthandler.dump_traceback(all_threads=True)
                os._exit(EXIT_HUNG)


class HealthFile:
    """`<run>/health/<process>.json`, rewritten while the loop turns; its age is the liveness check in containers."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, facts: Mapping[str, object]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        scratch = self._path.with_suffix(f".{os.getpid()}")
        scratch.write_bytes(msgspec.json.encode(facts))
        scratch.replace(self._path)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def clear_dead_replicas(run: Path, service: str, *, now: float) -> None:
    """Remove the health files and sockets that killed replicas left in `run`; `now` in seconds since the epoch.

    In containers every start has a name of its own, so that no later one would put its files in their place.
    """
    for health in list((run / "health").glob(f"{service}-*.json")):
        try:
            if now - health.stat().st_mtime < DEAD_SECONDS:
                continue
            path = run / f"{health.stem}.sock"
            if not _is_served(path):
                path.unlink(missing_ok=True)
                health.unlink(missing_ok=True)
        except OSError as error:
            sys.stderr.write(f"{health}: a dead replica's files stay: {error}\n")


def _is_served(path: Path) -> bool:
    """Whether a process listens there: one that only stands still (SIGSTOP) is not dead."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except BlockingIOError:  # its queue is full
            pass
        return True


async def keep_beating(watchdog: Watchdog, file: HealthFile, facts: Callable[[], Mapping[str, object]]) -> None:
    """Guarded task: beat once a second, write the file every BEAT_SECONDS. A full disk only skips the file, which is
    told once."""
    beats = 0
    trouble = ""
    while True:
        watchdog.beat()
        if beats % int(BEAT_SECONDS) == 0:
            try:
                file.write(facts())
            except OSError as error:
                if not trouble:
                    log.warning("health file not written error=%s", error)
                trouble = str(error)
            else:
                if trouble:
                    log.info("health file is written again")
                trouble = ""
        beats += 1
        await asyncio.sleep(1)
