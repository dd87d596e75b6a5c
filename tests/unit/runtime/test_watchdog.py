"""The watchdog of a process: a loop that hangs ends it, a process that was held does not end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from shared.runtime.health import EXIT_HUNG
from tests.support.eventually import eventually

LIMIT = 1.0
BEATS = f"""
    import asyncio, sys, time
    from shared.runtime.health import Watchdog

    watchdog = Watchdog({LIMIT})

    async def main():
        watchdog.start()
        for number in range(600):
            watchdog.beat()
            print(number, flush=True)
            await asyncio.sleep(0.05)
"""
HANGS = """
    def a_call_that_hangs():
        time.sleep(60)

    async def hang():
        watchdog.start()
        a_call_that_hangs()

    asyncio.run(hang())
"""


@contextmanager
def process(source: str, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It writes what it says to `out` and `err` in the directory."""
    with (directory / "out").open("wb") as out, (directory / "err").open("wb") as err:
        started = subprocess.Popen([sys.executable, "-c", source], stdout=out, stderr=err)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def beats(directory: Path) -> int:
    return len((directory / "out").read_text().splitlines())


def has_beaten(directory: Path, more_than: int) -> bool:
    return beats(directory) > more_than


def test_a_loop_that_hangs_ends_the_process_with_a_traceback(tmp_path: Path) -> None:
    with process(textwrap.dedent(BEATS) + textwrap.dedent(HANGS), tmp_path) as hung:
        assert hung.wait(30) == EXIT_HUNG
    said = (tmp_path / "err").read_text()
    assert "the event loop hangs" in said
    assert "a_call_that_hangs" in said, "which call it was"


def test_a_loop_that_turns_is_left_alone(tmp_path: Path) -> None:
    with process(textwrap.dedent(BEATS) + "asyncio.run(main())", tmp_path) as turning:
        eventually(lambda: beats(tmp_path) > 3 * LIMIT / 0.05, within=30)
        assert turning.poll() is None


def test_a_process_that_was_held_for_longer_than_the_limit_goes_on(tmp_path: Path) -> None:
    """SIGSTOP, or a machine that slept: nothing hung."""
    with process(textwrap.dedent(BEATS) + "asyncio.run(main())", tmp_path) as held:
        for _ in range(2):
            before = eventually(lambda: beats(tmp_path), within=30)
            os.kill(held.pid, signal.SIGSTOP)
            stopped_for(held.pid, 3 * LIMIT)
            os.kill(held.pid, signal.SIGCONT)
            eventually(partial(has_beaten, tmp_path, before + int(3 * LIMIT / 0.05)), within=30)
            assert held.poll() is None


def stopped_for(pid: int, seconds: float) -> None:
    """Wait while it stands still, counted by a process that runs meanwhile."""
    eventually(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", within=5)
    subprocess.run([sys.executable, "-c", f"import select; select.select([], [], [], {seconds})"], check=True)
