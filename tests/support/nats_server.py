"""A real nats-server on a free loopback port with a store of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from shared.bus import Credentials
from tests.support.eventually import eventually


def nats_binary() -> str:
    """The server's path; where it is missing CI fails and a person is told."""
    found = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("nats-server is missing: run make setup")
        pytest.skip("nats-server is missing: run make setup")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class NatsServer:
    """Start, kill -9, start again on the same port; `wipe` throws its store away."""

    def __init__(self, directory: Path, *, node: str = "n1", config: str | None = None) -> None:
        self.directory = directory
        self.port = free_port()
        self.node = node
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def credentials(self, service: str) -> Credentials:
        return Credentials(url=self.url, user=service, password="secret")

    def start(self) -> None:
        users = ", ".join(
            f"{{user: {name}, password: secret}}" for name in ("source", "podworker", "status", "stats", "api")
        )
        config = self._config or (
            f"accounts {{ PODBUS {{jetstream: enabled, users: [{users}]}}, SYS {{}} }}\nsystem_account: SYS\n"
        )
        text = (
            f"listen: 127.0.0.1:{self.port}\nserver_name: {self.node}\nmax_payload: 4MB\n"
            f"jetstream {{ store_dir: {json.dumps(str(self.directory / 'store'))}, domain: {self.node} }}\n{config}"
        )
        path = self.directory / "nats.conf"
        path.write_text(text)
        with (self.directory / "nats.log").open("ab") as log:
            self._process = subprocess.Popen([nats_binary(), "-c", str(path)], stdout=log, stderr=log)
        eventually(self._answers, within=10)

    def _answers(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as link:
            return link.recv(4) == b"INFO"

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    def wipe(self) -> None:
        shutil.rmtree(self.directory / "store", ignore_errors=True)
