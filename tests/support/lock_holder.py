"""A process that does with the owners' lock file what its standard input says, one command a line; for OwnerLocks'
tests, which need real processes.

    acquire SLOT | release SLOT | join | leave | members | child SECONDS

Each is answered with one line. `child` starts a program that outlives the command, as an exec probe would.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from services.podworker.adapters.owner_locks import OwnerLocks

ROOT = Path(__file__).resolve().parents[2]


class LockHolder:
    """The process, from the test's side. `wrapper`: a command to run it under, e.g. unshare."""

    def __init__(self, path: Path, wrapper: Sequence[str] = ()) -> None:
        self._process = subprocess.Popen(
            [*wrapper, sys.executable, "-m", "tests.support.lock_holder", str(path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._answer() == "ready"

    def ask(self, command: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the holder has ended with {self._process.wait()}")
        return line.strip()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and wait until it's gone."""
        self._process.kill()
        self._process.wait(10)

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def _do(locks: OwnerLocks, children: list[subprocess.Popen[bytes]], command: str) -> object:
    verb, *arguments = command.split()
    match verb:
        case "acquire":
            return locks.acquire(int(arguments[0]))
        case "release":
            locks.release(int(arguments[0]))
            return None
        case "join":
            return locks.join()
        case "leave":
            locks.leave()
            return None
        case "members":
            return sorted(locks.members())
        case "child":
            children.append(subprocess.Popen(["sleep", arguments[0]]))
            return children[-1].pid
    raise ValueError(command)


def main() -> None:
    locks = OwnerLocks(Path(sys.argv[1]))
    children: list[subprocess.Popen[bytes]] = []
    print("ready", flush=True)
    for line in sys.stdin:
        print(_do(locks, children, line), flush=True)


if __name__ == "__main__":
    main()
