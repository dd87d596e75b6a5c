"""The port without TLS and credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.component.api.process import ApiProcess
from tests.support.nats_server import NatsServer, free_port

pytestmark = pytest.mark.nats


def test_c52_it_shows_pods_and_nothing_that_acts(tmp_path: Path, module_nats: NatsServer) -> None:
    api = ApiProcess(tmp_path / "data", module_nats, read_only_port=free_port())
    api.start()
    try:
        assert api.ask_read_only("/pods").status == 200
        disabled = api.ask_read_only("/exec/a/b/c")
        assert (disabled.status, disabled.body) == (405, b"Debug endpoints are disabled.\n")
        assert api.ask_read_only("/configz").status == 404
    finally:
        api.stop()
