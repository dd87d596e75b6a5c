"""When the data directory's disk counts as full."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from services.api.adapters.disk import disk_trouble

ROOMY = {"f_bavail": 1000, "f_frsize": 4096, "f_files": 100, "f_favail": 50}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"f_bavail": 3}, "the disk of /d is full (12 KiB free): no new pod starts until it has room"),
        ({"f_favail": 0}, "the disk of /d has no inode left: no new pod starts until it has room"),
        ({"f_files": 0, "f_favail": 0}, ""),
    ],
    ids=["room", "no bytes", "no inodes", "a file system without inodes"],
)
def test_a_disk_without_room_is_told(monkeypatch: pytest.MonkeyPatch, changed: dict[str, int], said: str) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(**{**ROOMY, **changed}))
    assert disk_trouble(Path("/d")) == said


def test_a_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    assert "No such file" in disk_trouble(tmp_path / "gone")
