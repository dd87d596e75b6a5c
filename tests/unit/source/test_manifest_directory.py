"""The directory's changes are noticed, wherever its name leads."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from services.source.adapters.manifest_directory import ManifestDirectory

NOTICED_SECONDS = 10
"""Far more than inotify needs: without it nothing comes at all."""


@asynccontextmanager
async def watching(path: Path) -> AsyncIterator[ManifestDirectory]:
    directory = ManifestDirectory(path)
    directory.listing()
    try:
        yield directory
    finally:
        directory.close()


async def noticed(directory: ManifestDirectory) -> None:
    await asyncio.wait_for(directory.changed(), NOTICED_SECONDS)


async def test_a_written_file_is_noticed(tmp_path: Path) -> None:
    async with watching(tmp_path) as directory:
        (tmp_path / "a.yaml").write_text("x")
        await noticed(directory)


async def test_after_a_link_was_turned_to_another_directory_its_changes_are_noticed(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    place = tmp_path / "place"
    place.symlink_to("one")
    async with watching(place) as directory:
        place.unlink()
        place.symlink_to("two")
        assert directory.listing().files == {}
        (tmp_path / "two" / "a.yaml").write_text("x")
        await noticed(directory)
        assert list(directory.listing().files) == [str(place / "a.yaml")]


async def test_a_directory_that_was_replaced_is_followed(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    async with watching(place) as directory:
        place.rename(tmp_path / "old")
        place.mkdir()
        await noticed(directory)
        directory.listing()
        (place / "a.yaml").write_text("x")
        await noticed(directory)
        assert list(directory.listing().files) == [str(place / "a.yaml")]


async def test_only_a_file_that_was_written_to_a_moment_ago_is_fresh(tmp_path: Path) -> None:
    """One from the future isn't, or a wrong clock would keep it so."""
    now = time.time()
    for name, modified in (("new", now), ("old", now - 60), ("future", now + 3600)):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (modified, modified))
    async with watching(tmp_path) as directory:
        os.utime(tmp_path / "new")
        assert directory.listing().fresh == {str(tmp_path / "new")}
