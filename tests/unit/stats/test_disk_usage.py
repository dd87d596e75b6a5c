"""Sizes of directories: how they are counted, and how often."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from services.stats.adapters.directories import DirectoryWalker
from services.stats.core.model import ImageTarget, Targets, VolumeTarget
from services.stats.core.parse_proc import parse_upper_directory
from services.stats.handlers.disk import EVERY_SECONDS, LONGEST_SECONDS, RETRY_SECONDS, Disk
from tests.support.stats_node import POD, WEB, FakeClock, FakeFilesystems, FakeProcesses

TARGETS = Targets(pods=(POD,), images=ImageTarget(root_dir="/docker"))


class FakeDirectories:
    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.sizes: dict[str, int] = {"/upper/41": 10, f"/docker/containers/{WEB.id}": 20, "/data": 3}
        self.seconds = 0.0
        self.walked: list[str] = []

    def size(self, path: str) -> tuple[int, int] | None:
        self.walked.append(path)
        self.clock.boot += self.seconds
        return (self.sizes[path], 1) if path in self.sizes else None

    def volumes(self, uid: str) -> tuple[VolumeTarget, ...]:
        return (VolumeTarget(name="v", path="/data"),)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def directories(clock: FakeClock) -> FakeDirectories:
    return FakeDirectories(clock)


@pytest.fixture
def disk(clock: FakeClock, directories: FakeDirectories) -> Disk:
    made = Disk(directories, FakeProcesses(), FakeFilesystems(), clock)
    made.set_targets(TARGETS)
    return made


def test_layers_logs_and_volumes_are_told_once_they_were_walked(disk: Disk) -> None:
    assert disk.rootfs(WEB.id) is None
    disk.walk_due()
    rootfs, logs, volumes = disk.rootfs(WEB.id), disk.logs(WEB.id), disk.volumes(POD.uid)
    assert rootfs is not None and rootfs.size.used_bytes == 10
    assert logs is not None and logs.size.used_bytes == 20
    assert [(one.target.name, one.share.size.used_bytes) for one in volumes] == [("v", 3)]


def test_a_directory_is_walked_once_a_minute(disk: Disk, directories: FakeDirectories, clock: FakeClock) -> None:
    disk.walk_due()
    clock.boot += EVERY_SECONDS - 1
    directories.walked.clear()
    disk.walk_due()
    assert not directories.sizes.keys() & directories.walked
    clock.boot += 1
    disk.walk_due()
    assert "/upper/41" in directories.walked


def test_what_takes_long_is_walked_seldom(disk: Disk, directories: FakeDirectories, clock: FakeClock) -> None:
    """Never more than a fiftieth of the time, up to twenty minutes apart."""
    directories.seconds = 6.0
    disk.walk_due()
    directories.seconds = 0.0
    directories.walked.clear()
    clock.boot += 270
    disk.walk_due()
    assert "/upper/41" not in directories.walked
    clock.boot += 30
    disk.walk_due()
    assert "/upper/41" in directories.walked


def test_what_fails_is_tried_again_later_and_later(disk: Disk, directories: FakeDirectories, clock: FakeClock) -> None:
    """Case 39: without a layer to walk there is no rootfs, and nothing else is lost."""
    del directories.sizes["/upper/41"]
    disk.walk_due()
    assert disk.rootfs(WEB.id) is None
    assert disk.logs(WEB.id) is not None
    for seconds, walked in ((0.9, False), (0.1, True), (1.9, False), (0.1, True), (3.9, False), (0.1, True)):
        clock.boot += seconds
        directories.walked.clear()
        disk.walk_due()
        assert ("/upper/41" in directories.walked) is walked
    for _ in range(10):
        clock.boot += LONGEST_SECONDS
        disk.walk_due()
    clock.boot += LONGEST_SECONDS
    directories.walked.clear()
    disk.walk_due()
    assert "/upper/41" in directories.walked, "but never more than twenty minutes"


def test_a_first_walk_that_came_too_early_costs_seconds_not_minutes(
    disk: Disk, directories: FakeDirectories, clock: FakeClock
) -> None:
    """The containers can be told before the engine's root is."""
    disk.set_targets(replace(TARGETS, images=None))
    disk.walk_due()
    assert disk.logs(WEB.id) is None
    disk.set_targets(TARGETS)
    clock.boot += RETRY_SECONDS
    disk.walk_due()
    assert disk.logs(WEB.id) is not None


def test_an_ended_container_is_forgotten(disk: Disk) -> None:
    disk.walk_due()
    disk.set_targets(replace(TARGETS, pods=(replace(POD, containers=()),)))
    assert disk.rootfs(WEB.id) is None
    disk.set_targets(Targets())
    assert disk.volumes(POD.uid) == ()


def test_a_walk_counts_blocks_once_per_file(tmp_path: Path) -> None:
    """As du: a hard link counts once, a hole not at all, a symbolic link as itself."""
    top = tmp_path / "top"
    top.mkdir()
    walker = DirectoryWalker(tmp_path)
    empty = walker.size(str(top))
    assert empty is not None
    (top / "a").write_bytes(b"x" * 100_000)
    os.link(top / "a", top / "b")
    with (top / "hole").open("wb") as hole:
        hole.truncate(10 << 20)
    (top / "link").symlink_to("/usr")
    found = walker.size(str(top))
    assert found is not None
    allocated = sum((top / name).lstat().st_blocks for name in ("a", "hole", "link")) * 512
    assert found == (empty[0] + allocated, 4)
    assert walker.size(str(tmp_path / "none")) is None


def test_a_pods_volumes_are_found_by_their_directories(tmp_path: Path) -> None:
    root = tmp_path / "pods/u/volumes"
    for plugin, name in (("empty-dir", "cache"), ("secret", "token"), ("host-path", "etc")):
        (root / f"kubernetes.io~{plugin}" / name).mkdir(parents=True)
    found = {one.name: one.is_local for one in DirectoryWalker(tmp_path).volumes("u")}
    assert found == {"cache": True, "token": False}, "a host path isn't the pod's to count"
    assert DirectoryWalker(tmp_path).volumes("other") == ()


def test_the_writable_layer_is_the_upper_directory_of_the_root_mount() -> None:
    text = (
        "1 0 0:50 / / rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/docker/overlay2/x/diff,workdir=/w\n"
        "2 1 0:51 / /proc rw - proc proc rw\n"
    )
    assert parse_upper_directory(text) == "/docker/overlay2/x/diff"
    assert parse_upper_directory("1 0 254:0 / / rw - ext4 /dev/vda rw\n") is None
