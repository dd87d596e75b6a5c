"""A worker in this process: its data directory, its engine, and who plays source."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.db import db_upgrade
from shared.bus import connect
from tests.component.podworker.worker_on_model import ENGINE, Desired, Worker, start_worker
from tests.support.model_runtime import ModelRuntime
from tests.support.nats_server import NatsServer
from tests.support.played_source import ShownPods


@pytest.fixture
def engine() -> ModelRuntime:
    made = ModelRuntime(time.time)
    ENGINE[:] = [made]
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    db_upgrade(path)
    return path


@pytest.fixture
async def desired(nats_server: NatsServer) -> AsyncIterator[Desired]:
    bus = await connect(nats_server.credentials("source"), node="n1", service="source", name="source")
    await bus.ensure_buckets()
    made = Desired(bus)
    await made.mark()
    made.shown = ShownPods(bus)
    await made.shown.listed()
    yield made
    made.shown.close()
    await bus.drain()


@pytest.fixture
async def worker(
    nats_server: NatsServer, engine: ModelRuntime, data: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Worker]:
    made = await start_worker(nats_server, data, monkeypatch)
    yield made
    await made.stop()
