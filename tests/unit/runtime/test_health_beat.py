"""The health file of a process on a disk that takes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from shared.runtime import health
from shared.runtime.health import HealthFile, Watchdog, keep_beating


class FullThenFree(HealthFile):
    """Takes nothing the first two times."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.tries = 0
        self.enough = asyncio.Event()

    def write(self, facts: Mapping[str, object]) -> None:
        self.tries += 1
        if self.tries == 4:
            self.enough.set()
        if self.tries < 3:
            raise OSError(28, "No space left on device")


async def test_a_full_disk_is_told_once_and_its_end_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(health, "BEAT_SECONDS", 1.0)
    real = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: real(0))
    caplog.set_level(logging.INFO, "podbus.health")
    file = FullThenFree(tmp_path / "x.json")
    beating = asyncio.create_task(keep_beating(Watchdog(), file, dict))
    await asyncio.wait_for(file.enough.wait(), 5)
    beating.cancel()
    assert [record.message for record in caplog.records] == [
        "health file not written error=[Errno 28] No space left on device",
        "health file is written again",
    ]
