"""What the supervisor asks nats-server: whether it keeps values."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cli.bus_liveness import keeps_values
from shared.bus import connect
from tests.support.eventually import eventually
from tests.support.nats_server import NatsServer

pytestmark = pytest.mark.nats


def asked(server: NatsServer, password: str = "secret") -> bool:
    return keeps_values(server.port, "source", password)


def test_a_server_without_buckets_is_fine(nats_server: NatsServer) -> None:
    """A wiped store: the services make them."""
    assert asked(nats_server)


async def test_a_server_with_the_buckets_is_fine(nats_server: NatsServer) -> None:
    bus = await connect(nats_server.credentials("api"), node="n1", service="api", name="api")
    await bus.ensure_buckets()
    await bus.drain()
    assert asked(nats_server)


def test_one_that_keeps_nothing_is_not(tmp_path: Path) -> None:
    """As newer servers are after a write has failed: JetStream is off."""
    server = NatsServer(tmp_path, config="accounts { PODBUS { users: [{user: source, password: secret}] } }\n")
    server.start()
    try:
        assert not asked(server)
    finally:
        server.stop()


def test_one_that_refuses_us_is_not(nats_server: NatsServer) -> None:
    assert not asked(nats_server, "wrong")


def test_one_that_hangs_is_told_by_a_timeout(nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.bus_liveness._SECONDS", 0.3)
    assert nats_server._process is not None
    pid = nats_server._process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        eventually(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", within=5)
        with pytest.raises(TimeoutError):
            asked(nats_server)
    finally:
        os.kill(pid, signal.SIGCONT)


def test_no_server_is_a_refused_connection(nats_server: NatsServer) -> None:
    nats_server.stop()
    with pytest.raises(ConnectionRefusedError):
        asked(nats_server)
