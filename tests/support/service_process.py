"""One service as a process of its own, as a container runs it: started, waited for, killed, ended."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cli.db import db_upgrade
from shared.runtime.paths import DataPaths
from tests.support.nats_server import NatsServer

ROOT = Path(__file__).resolve().parents[2]


class ServiceProcess:
    """`python -m services.<service>` on a data directory of the test's own, which outlives the process.

    `program`: Python source to run in its place, for a service that a test prepared; it gets no arguments and the
    same environment. `environment`: further PODBUS_* variables.
    """

    def __init__(
        self,
        service: str,
        data: Path,
        nats: NatsServer,
        *,
        node: str = "n1",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.service = service
        self.data = data
        self.paths = DataPaths(data)
        self.log_path = data / f"{service}.log"
        self.nats = nats
        self._environment = {
            **os.environ,
            "PODBUS_DATA": str(data),
            "PODBUS_NODE_NAME": node,
            "PODBUS_LOG_LEVEL": "DEBUG",
            **(environment or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """The databases, and the credentials of the bus. May be called again."""
        db_upgrade(self.data)
        credentials = self.paths.bus_credentials(self.service)
        credentials.parent.mkdir(parents=True, exist_ok=True)
        credentials.write_bytes(msgspec.json.encode(self.nats.credentials(self.service)))

    def start(self, program: str | None = None, *, within: float = 20) -> None:
        """Return when the process has said that it's ready; AssertionError with its log when it doesn't."""
        self.prepare()
        readable, writable = os.pipe()
        try:
            self.spawn(program, ready_fd=writable)
            os.close(writable)
            self._wait_ready(readable, within)
        finally:
            os.close(readable)

    def spawn(self, program: str | None = None, *, ready_fd: int | None = None) -> None:
        """Start without waiting."""
        assert self._process is None, f"{self.service} runs already"
        command = ["-m", f"services.{self.service}"] if program is None else ["-c", program]
        environment = dict(self._environment)
        if ready_fd is not None:
            environment["PODBUS_READY_FD"] = str(ready_fd)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                pass_fds=() if ready_fd is None else (ready_fd,),
            )

    def _wait_ready(self, readable: int, within: float) -> None:
        deadline = time.monotonic() + within
        while (left := deadline - time.monotonic()) > 0:
            found, _, _ = select.select([readable], [], [], left)
            if found and os.read(readable, 200):
                return
            if found:  # closed: it has ended
                break
        raise AssertionError(f"{self.service} isn't ready within {within} s:\n{self.log()}")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL, 10)

    def stop(self, *, within: float = 15) -> int:
        """SIGTERM; the exit code. 0 when it doesn't run."""
        return self._end(signal.SIGTERM, within)

    def wait(self, *, within: float = 15) -> int:
        """Until it ends by itself; the exit code (negative: the signal)."""
        assert self._process is not None
        code = self._process.wait(within)
        self._process = None
        return code

    def close(self) -> None:
        """However the test ended."""
        if self._process is not None:
            self._end(signal.SIGKILL, 10)

    def _end(self, how: signal.Signals, within: float) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(how)
        return self.wait(within=within)
