"""hostPath volumes and sub paths on a real file system, with links that lead out."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.podworker.adapters.mounting import mounts_below, unmount_below
from services.podworker.adapters.volume_store import VolumeStore
from services.podworker.core.config_objects import ConfigError
from services.podworker.core.volumes import DirectoryVolume, HostVolume, ProjectedFile, VolumeFault
from tests.component.podworker.volumes_on_disk import Store, mode

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 and os.environ.get("CI") != "true", reason="volumes in memory need root: run the tests as root"
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.store.close()
    unmount_below(tmp_path)


# -- hostPath -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("Directory", lambda p: p.mkdir()),
        ("DirectoryOrCreate", lambda p: p.mkdir()),
        ("File", lambda p: p.touch()),
        ("FileOrCreate", lambda p: p.touch()),
        ("Socket", lambda p: os.mknod(p, 0o600 | stat.S_IFSOCK)),
        ("CharDevice", lambda p: p.symlink_to("/dev/null")),
        ("", lambda p: p.touch()),
    ],
)
async def test_a_host_path_of_its_type_is_taken(store: Store, kind: str, made: object) -> None:
    path = store.data / "h"
    made(path)  # type: ignore[operator]
    await store.made(HostVolume(name="v", path=str(path), type=kind))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("Directory", "is not a directory"),
        ("DirectoryOrCreate", "is not a directory"),
        ("Socket", "is not a socket"),
        ("CharDevice", "is not a character device"),
        ("BlockDevice", "is not a block device"),
    ],
)
async def test_one_of_another_type_is_refused_in_the_kubelets_words(store: Store, kind: str, words: str) -> None:
    """V03"""
    path = store.data / "h"
    path.touch()
    faults = await store.store.set_up([HostVolume(name="v", path=str(path), type=kind)])
    assert faults == [VolumeFault("v", f"hostPath type check failed: {path} {words}")]


@pytest.mark.parametrize("kind", ["Directory", "File", "Socket", "CharDevice", "BlockDevice"])
async def test_one_that_is_missing_is_refused_where_it_may_not_be_made(store: Store, kind: str) -> None:
    """a16"""
    (fault,) = await store.store.set_up([HostVolume(name="v", path=str(store.data / "none"), type=kind)])
    assert fault.message.startswith(f"hostPath type check failed: {store.data / 'none'} is not a ")
    assert not (store.data / "none").exists()


async def test_what_may_be_made_is_made_whatever_the_umask(store: Store) -> None:
    """V04"""
    before = os.umask(0o077)
    try:
        for kind in ("", "DirectoryOrCreate"):
            path = await store.made(HostVolume(name="v", path=str(store.data / f"x{kind}" / "y"), type=kind))
            assert (path.is_dir(), mode(path), mode(path.parent)) == (True, 0o755, 0o755)
        file = await store.made(HostVolume(name="v", path=str(store.data / "f"), type="FileOrCreate"))
        assert (file.is_file(), mode(file)) == (True, 0o644)
    finally:
        os.umask(before)


async def test_a_file_is_not_made_without_its_parent(store: Store) -> None:
    """V04"""
    (fault,) = await store.store.set_up([HostVolume(name="v", path=str(store.data / "no" / "f"), type="FileOrCreate")])
    assert "No such file or directory" in fault.message
    assert not (store.data / "no").exists()


async def test_a_host_seen_from_a_container_keeps_its_own_links(tmp_path: Path) -> None:
    """An absolute link of the host means the host's path, not this process's."""
    host = tmp_path / "host"
    (host / "real").mkdir(parents=True)
    (host / "link").symlink_to("/real")
    seen = Store(tmp_path / "data")
    seen.store = VolumeStore(tmp_path / "data", lambda: host)
    assert await seen.store.set_up([HostVolume(name="v", path="/link/made", type="DirectoryOrCreate")]) == []
    assert (host / "real" / "made").is_dir()
    assert not Path("/real").exists()
    seen.store.close()


# -- sub paths ----------------------------------------------------------------------------------------------------


async def test_a_missing_sub_path_is_made_with_the_volumes_mode(store: Store) -> None:
    """V09"""
    root = await store.made(DirectoryVolume(name="v", path=store.path("v"), group=2000))
    source = await store.bound(root, "a/b")
    assert mode(root / "a" / "b") == 0o2777
    assert (root / "a" / "b").stat().st_gid == 2000
    (source / "f").write_text("x")
    assert (root / "a" / "b" / "f").read_text() == "x"


async def test_a_file_is_bound_as_it_is_now(store: Store) -> None:
    root = await store.made(DirectoryVolume(name="v", path=store.path("v")))
    (root / "f").write_text("one")
    source = await store.bound(root, "f")
    (root / "f").rename(root / "g")
    (root / "f").write_text("two")
    assert source.read_text() == "one"
    assert (await store.bound(root, "f")).read_text() == "two"


async def test_a_key_of_a_files_volume_is_reached_through_its_links(store: Store) -> None:
    root = await store.made(store.files(ProjectedFile("k", b"v", 0o644)))
    assert (await store.bound(root, "k", may_create=False)).read_bytes() == b"v"
    with pytest.raises(ConfigError, match="no such key"):
        await store.bound(root, "nope", may_create=False)
    assert not (root / "nope").exists()


@pytest.mark.parametrize("link", ["/etc", "../../../../../../etc", "..", "loop"])
@pytest.mark.parametrize("below", ["", "/passwd", "/made"])
async def test_a_link_out_of_the_volume_is_not_followed(store: Store, link: str, below: str) -> None:
    """V09: also where something would be made behind it."""
    root = await store.made(DirectoryVolume(name="v", path=store.path("v")))
    (root / "loop").symlink_to(link)
    with pytest.raises(ConfigError) as error:
        await store.bound(root, f"loop{below}")
    told = str(error.value)
    assert told.startswith('failed to prepare subPath for volumeMount "v" of container "c"')
    assert told.endswith("it leads out of the volume")
    assert not Path("/etc/made").exists()
    assert mounts_below(store.data) == {}


async def test_a_link_within_the_volume_is_followed(store: Store) -> None:
    root = await store.made(DirectoryVolume(name="v", path=store.path("v")))
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    source = await store.bound(root, "link/new")
    (source / "f").touch()
    assert (root / "real" / "new" / "f").exists()


async def test_what_is_bound_stays_what_was_checked(store: Store) -> None:
    """A container that swaps the directory for a link afterwards gains nothing."""
    root = await store.made(DirectoryVolume(name="v", path=store.path("v")))
    source = await store.bound(root, "a")
    (root / "a").rename(root / "b")
    (root / "a").symlink_to("/etc")
    assert not (source / "passwd").exists()
