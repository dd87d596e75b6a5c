"""Run the supervisor in the background: the command returns when the node is ready, or has failed to start."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path


def detach(body: Callable[[int], int], stray_output: Path) -> int:
    """Fork a session of its own that runs `body(descriptor)`; copy what it writes there until it closes it.

    0 when the last line was READY, which isn't shown; else 1. `stray_output` gets its standard output and error.
    """
    read, write = os.pipe2(os.O_CLOEXEC)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork() == 0:
        code = 1
        try:
            os.close(read)
            os.setsid()
            os.chdir("/")
            _redirect(stray_output)
            code = body(write)
        finally:
            os._exit(code)
    os.close(write)
    return _relay(read)


READY_LINE = "READY"


def _redirect(stray_output: Path) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(stray_output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for fd in (null, log):
        if fd > 2:
            os.close(fd)


def _relay(fd: int) -> int:
    is_ready = False
    with os.fdopen(fd, "r", errors="replace") as lines:
        for line in lines:
            if line.rstrip("\n") == READY_LINE:
                is_ready = True
                break
            sys.stdout.write(line)
            sys.stdout.flush()
    return 0 if is_ready else 1
