"""A pod's volumes on a real file system, with real mounts: made, refreshed, taken down."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from services.podworker.adapters.mounting import mounts_below, unmount_below
from services.podworker.adapters.pod_files import PodFiles
from services.podworker.core.config_objects import ConfigError
from services.podworker.core.volumes import DirectoryVolume, HostVolume, ProjectedFile
from tests.component.podworker.volumes_on_disk import UID, Store, mode

Result = TypeVar("Result")

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 and os.environ.get("CI") != "true", reason="volumes in memory need root: run the tests as root"
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.store.close()
    unmount_below(tmp_path)


async def test_an_empty_dir_is_open_to_all_whatever_the_umask_and_kept_when_it_is_there(store: Store) -> None:
    """V01"""
    before = os.umask(0o077)
    try:
        path = await store.made(DirectoryVolume(name="v", path=store.path("v")))
        (path / "f").write_text("kept")
        assert await store.made(DirectoryVolume(name="v", path=store.path("v"))) == path
    finally:
        os.umask(before)
    assert mode(path) == 0o777
    assert mode(path.parents[2]) == 0o750
    assert (path / "f").read_text() == "kept"


async def test_one_in_memory_has_its_size_and_is_mounted_once(store: Store) -> None:
    setup = DirectoryVolume(name="v", path=store.path("v"), memory=True, size=1 << 20)
    path = await store.made(setup)
    (path / "f").write_text("kept")
    await store.made(setup)
    assert (path / "f").read_text() == "kept"
    assert mounts_below(store.data) == {str(path): "tmpfs"}
    disk = os.statvfs(path)
    assert disk.f_blocks * disk.f_frsize == 1 << 20
    with pytest.raises(OSError, match="No space"):
        (path / "g").write_bytes(b"x" * (2 << 20))


async def test_the_group_gets_the_directory_and_what_is_made_in_it(store: Store) -> None:
    """V13"""
    for setup in (
        DirectoryVolume(name="a", path=store.path("a"), group=2000),
        DirectoryVolume(name="b", path=store.path("b"), memory=True, group=2000),
    ):
        path = await store.made(setup)
        assert path.stat().st_gid == 2000
        assert mode(path) & 0o2070 == 0o2070
        (path / "f").touch()
        assert (path / "f").stat().st_gid == 2000


async def test_files_are_laid_out_as_the_kubelet_does(store: Store) -> None:
    """V05, V07: names -> ..data -> a directory of its own; exact modes."""
    path = await store.made(store.files(ProjectedFile("a", b"1", 0o644), ProjectedFile("d/e", b"2", 0o400)))
    data = (path / "..data").readlink()
    assert str(data).startswith("..20")
    assert {entry.name for entry in path.iterdir()} == {"..data", str(data), "a", "d"}
    assert ((path / "a").readlink(), (path / "d").readlink()) == (Path("..data/a"), Path("..data/d"))
    assert ((path / "a").read_bytes(), (path / "d" / "e").read_bytes()) == (b"1", b"2")
    assert (mode(path / "a"), mode(path / "d" / "e"), mode(path / data)) == (0o644, 0o400, 0o755)


async def test_files_with_a_group_are_readable_to_it_and_no_more(store: Store) -> None:
    """V13"""
    path = await store.made(store.files(ProjectedFile("d/e", b"2", 0o400), group=2000))
    assert (mode(path / "d" / "e"), (path / "d" / "e").stat().st_gid) == (0o440, 2000)
    assert (mode(path / "..data" / "d"), (path / "..data" / "d").stat().st_gid) == (0o2755, 2000)


async def test_a_change_swaps_all_files_at_once_and_no_change_writes_nothing(store: Store) -> None:
    old = [ProjectedFile("a", b"1", 0o644), ProjectedFile("gone", b"x", 0o644)]
    path = await store.made(store.files(*old))
    first = (path / "..data").readlink()
    held = os.open(path / "a", os.O_RDONLY)
    await store.made(store.files(*old))
    assert (path / "..data").readlink() == first
    await store.made(store.files(ProjectedFile("a", b"2", 0o644), ProjectedFile("new", b"y", 0o644)))
    second = (path / "..data").readlink()
    assert second != first
    assert {entry.name for entry in path.iterdir()} == {"..data", str(second), "a", "new"}
    assert ((path / "a").read_bytes(), os.read(held, 9)) == (b"2", b"1")
    os.close(held)


def asked_again(ask: Callable[[], Result]) -> Result:
    """The second answer where the first was that there is nothing; so on for a third. A set that is away is away for
    longer."""
    for _ in range(2):
        with suppress(FileNotFoundError):
            return ask()
    return ask()


async def test_a_reader_never_finds_a_mixture_nor_nothing(store: Store) -> None:
    """While the set is replaced two hundred times. The kernel reads the link, then looks for what it names: a reader
    that is held up between the two for a whole replacement has to ask again, as with the kubelet."""
    path = await store.made(store.files(ProjectedFile("a", b"0", 0o644), ProjectedFile("b", b"0", 0o644)))
    seen: set[bytes] = set()
    over = threading.Event()

    def read() -> list[tuple[bytes, bytes]]:
        mixed = []
        while not over.is_set():
            assert asked_again((path / "a").read_bytes)
            data = asked_again(lambda: os.open(path / "..data", os.O_PATH | os.O_DIRECTORY))
            try:
                both = [os.open(name, os.O_RDONLY, dir_fd=data) for name in ("a", "b")]
            except FileNotFoundError:
                continue  # the set was replaced, and is gone
            finally:
                os.close(data)
            first, second = (os.read(handle, 9) for handle in both)
            for handle in both:
                os.close(handle)
            seen.add(first)
            if first != second:
                mixed.append((first, second))
        return mixed

    reading = asyncio.get_running_loop().run_in_executor(None, read)
    for number in range(1, 200):
        text = str(number).encode()
        await store.made(store.files(ProjectedFile("a", text, 0o644), ProjectedFile("b", text, 0o644)))
    over.set()
    assert await reading == []
    assert len(seen) > 1


async def test_a_changed_mode_is_a_change(store: Store) -> None:
    path = await store.made(store.files(ProjectedFile("a", b"1", 0o644)))
    await store.made(store.files(ProjectedFile("a", b"1", 0o600)))
    assert mode(path / "a") == 0o600


async def test_what_a_worker_left_that_died_at_writing_is_swept(store: Store) -> None:
    path = await store.made(store.files(ProjectedFile("a", b"1", 0o644)))
    (path / "..2026_01_01_00_00_00.dead").mkdir()
    (path / "..data_tmp").symlink_to("..2026_01_01_00_00_00.dead")
    await store.made(store.files(ProjectedFile("a", b"2", 0o644)))
    assert {entry.name for entry in path.iterdir()} == {"..data", str((path / "..data").readlink()), "a"}


async def test_files_that_cannot_be_written_leave_the_old_ones(store: Store) -> None:
    path = await store.made(store.files(ProjectedFile("a", b"1", 0o644)))
    clash = store.files(ProjectedFile("a", b"2", 0o644), ProjectedFile("a/b", b"3", 0o644))
    (fault,) = await store.store.set_up([clash])
    assert fault.volume == "v"
    assert (path / "a").read_bytes() == b"1"


async def test_secrets_are_in_memory_or_nowhere(store: Store) -> None:
    """Gone is the mount after a reboot: it's made anew, never written to the disk below it."""
    setup = store.files(ProjectedFile("token", b"s3cret", 0o600))
    path = await store.made(setup)
    assert mounts_below(path) == {str(path): "tmpfs"}
    unmount_below(path)
    assert list(path.iterdir()) == []
    await store.made(setup)
    assert mounts_below(path) == {str(path): "tmpfs"}


async def test_a_data_directory_behind_a_link_is_no_trouble(tmp_path: Path) -> None:
    """The kernel tells mounts by their real paths."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    linked = Store(tmp_path / "link")
    setup = linked.files(ProjectedFile("k", b"v", 0o644))
    path = await linked.made(setup)
    assert await linked.made(setup) == path
    await linked.bound(path, "k")
    await linked.bound(path, "k")
    assert len(mounts_below(tmp_path)) == 2
    await linked.store.tear_down(UID)
    assert mounts_below(tmp_path) == {}
    linked.store.close()


async def test_config_maps_are_on_the_disk(store: Store) -> None:
    path = await store.made(store.files(ProjectedFile("a", b"1", 0o644), memory=False))
    assert mounts_below(path) == {}
    assert mode(path) == 0o777
    assert await store.store.are_written([str(path)])
    assert not await store.store.are_written([str(path), store.path("other")])


# -- the end ------------------------------------------------------------------------------------------------------


async def test_taking_down_leaves_nothing_mounted_and_the_hosts_files_alone(store: Store) -> None:
    host = store.data / "host"
    (host / "sub").mkdir(parents=True)
    (host / "sub" / "precious").touch()
    await store.made(HostVolume(name="h", path=str(host)))
    await store.made(store.files(ProjectedFile("k", b"v", 0o644)))
    await store.bound(host, "sub", on_host=True)
    assert len(mounts_below(store.data)) == 2
    await store.store.tear_down(UID)
    assert mounts_below(store.data) == {}
    assert not store.volumes.exists()
    assert (host / "sub" / "precious").exists()
    await store.store.tear_down(UID)


async def test_a_pods_directory_goes_with_all_that_was_mounted_in_it(store: Store) -> None:
    host = store.data / "host"
    (host / "sub").mkdir(parents=True)
    (host / "sub" / "precious").touch()
    await store.made(store.files(ProjectedFile("k", b"v", 0o644)))
    await store.bound(host, "sub", on_host=True)
    PodFiles(store.data, store.data / "logs", store.data / "links").remove_pod(UID)
    assert mounts_below(store.data) == {}
    assert not (store.data / "pods" / UID).exists()
    assert (host / "sub" / "precious").exists()


@pytest.mark.parametrize("uid", ["", ".", "..", "../other", "a/b"])
async def test_a_uid_that_is_no_name_takes_nothing_down(store: Store, uid: str) -> None:
    path = await store.made(DirectoryVolume(name="v", path=store.path("v")))
    await store.store.tear_down(uid)
    assert path.is_dir()


# -- environment files --------------------------------------------------------------------------------------------


async def test_a_file_that_a_container_wrote_is_read_but_not_trusted(store: Store) -> None:
    """E09"""
    root = await store.made(DirectoryVolume(name="v", path=store.path("v")))
    (root / "env").write_text("K='v'")
    assert await store.store.read_file(str(root), "env") == "K='v'"
    assert await store.store.read_file(str(root), "none") is None
    (root / "out").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    (root / "big").write_bytes(b"#" * (2 << 20))
    for name, why in (("out", "out of the volume"), ("pipe", "not a plain file"), ("big", "larger than")):
        with pytest.raises(ConfigError, match=why):
            await store.store.read_file(str(root), name)
