"""A pod's volumes on a real file system, with real mounts: made, refreshed, bound, taken down."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.podworker.adapters.mounting import mounts_below, unmount_below
from services.podworker.adapters.pod_files import PodFiles
from services.podworker.adapters.volume_store import VolumeStore
from services.podworker.core.config_objects import ConfigError
from services.podworker.core.mounts import MountRequest
from services.podworker.core.volumes import (
    DirectoryVolume,
    FilesVolume,
    HostVolume,
    ProjectedFile,
    VolumeFault,
    VolumeSetup,
)

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 and os.environ.get("CI") != "true", reason="volumes in memory need root: run the tests as root"
)
UID = "u1"


class Store:
    """The real one below a directory of the test's own."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.store = VolumeStore(data)
        self.volumes = data / "pods" / UID / "volumes"

    def path(self, name: str, plugin: str = "empty-dir") -> str:
        return str(self.volumes / f"kubernetes.io~{plugin}" / name)

    def files(self, *files: ProjectedFile, memory: bool = True, group: int | None = None) -> FilesVolume:
        return FilesVolume(name="v", path=self.path("v", "secret"), files=files, memory=memory, group=group)

    async def made(self, setup: VolumeSetup) -> Path:
        assert await self.store.set_up([setup]) == []
        return Path(setup.path)

    async def bound(self, root: Path, sub_path: str, *, may_create: bool = True, on_host: bool = False) -> Path:
        request = MountRequest(
            volume="v",
            root=str(root),
            sub_path=sub_path,
            bind_path=str(self.data / "pods" / UID / "volume-subpaths" / "v" / "c" / "0"),
            target="/v",
            may_create=may_create,
            on_host=on_host,
            missing="no such key",
        )
        (mount,) = await self.store.bind("c", [request])
        return Path(mount.source)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.store.close()
    unmount_below(tmp_path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


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
