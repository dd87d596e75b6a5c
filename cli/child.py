"""Fork one child process with everything of the supervisor's undone, bound to its parent's life."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable

_PR_SET_PDEATHSIG = 1
_M_ARENA_MAX = -8
_libc = ctypes.CDLL(None, use_errno=True)

EXIT_CRASHED = 70
_MEANINGS = {2: "its time to end ran out", 70: "its event loop hung or the bus closed it", 78: "its settings are wrong"}
HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


def limit_arenas() -> None:
    """Two malloc arenas for all threads: as MALLOC_ARENA_MAX=2, for this process and its forks."""
    if hasattr(_libc, "mallopt"):
        _libc.mallopt(_M_ARENA_MAX, 2)


def fork(body: Callable[[], int], *, output: int | None, close: Iterable[int]) -> int:
    """Start a child that runs `body` and exits with what it returns; its pid.

    The child gets SIGTERM when this process dies, whatever the reason; it has its own process group (Ctrl-C reaches
    only the supervisor), default signal handling, /dev/null as input, and `output` as standard output and error.
    `close`: descriptors of ours that it must not hold.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid
    code = EXIT_CRASHED
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in HANDLED:
            signal.signal(number, signal.SIG_DFL)
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked to be told
            os._exit(EXIT_CRASHED)
        for fd in close:
            os.close(fd)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        if output is not None:
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        code = body()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - the child must never return into the supervisor's code
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def send_signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def read_some(fd: int) -> bytes | None:
    """None when there is nothing now, b"" at the end."""
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return None


def why_ended(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    meaning = _MEANINGS.get(code, "")
    return f"ended with exit code {code}" + (f" ({meaning})" if meaning else "")
