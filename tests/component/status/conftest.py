"""One status process per test, on a nats-server and a data directory of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.component.status.callers import Callers
from tests.support.nats_server import NatsServer
from tests.support.service_process import ServiceProcess


@pytest.fixture
def status(nats_server: NatsServer, tmp_path: Path) -> Iterator[ServiceProcess]:
    """Not started yet."""
    data = tmp_path / "data"
    data.mkdir()
    process = ServiceProcess("status", data, nats_server)
    yield process
    process.close()


@pytest.fixture
async def callers(nats_server: NatsServer) -> AsyncIterator[Callers]:
    made = Callers(nats_server)
    await made.start()
    yield made
    await made.stop()
