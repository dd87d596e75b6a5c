"""Where the supervisor's lines go: a terminal, the log, and while it starts detached the process that started it."""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path

from cli.log_files import RotatingFile


class Console:
    """Never blocks on a terminal that takes nothing (Ctrl-S): the file has everything."""

    def __init__(self, log: Path, output: int | None) -> None:
        """`output`: descriptor that people read, None = nobody."""
        self._log = RotatingFile(log)
        self._output = output

    def say(self, line: str) -> None:
        """With its time in the file only: people see it as it happens."""
        now = time.time()
        stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z supervisor"
        self._log.write("".join(f"{stamp} {part}\n" for part in line.split("\n")).encode())
        self._to_output(f"{line}\n".encode())

    def echo(self, data: bytes) -> None:
        """Only to the people: it is in another log already."""
        self._to_output(data)

    def let_go(self) -> None:
        """Nobody reads any more."""
        if self._output is not None and self._output > 2:
            os.close(self._output)
        self._output = None

    def close(self) -> None:
        self._log.close()

    def _to_output(self, data: bytes) -> None:
        if self._output is None:
            return
        try:
            if select.select([], [self._output], [], 0)[1]:
                os.write(self._output, data)
        except OSError:
            self._output = None


def complain(lines: list[str]) -> None:
    """Errors for people, each on its line."""
    for line in lines:
        sys.stderr.write(f"podbus: {line}\n")
