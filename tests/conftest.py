"""Fixtures only; nothing is imported from here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.nats_server import NatsServer

settings.register_profile("podbus", deadline=None)  # a busy machine is no fault of the code
settings.load_profile("podbus")


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A running server of this test's own."""
    server = NatsServer(tmp_path / "nats")
    server.start()
    yield server
    server.stop()
