"""What pods leave on the node is collected: all of those that are gone, and nothing of those that live."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from services.podworker.adapters.cgroup_parent import PodCgroups
from services.podworker.adapters.leftovers import SETTLED_SECONDS, NodeLeftovers
from services.podworker.adapters.pod_files import PodFiles
from services.podworker.core.collection import orphans
from services.podworker.core.model import RuntimePod
from services.podworker.handlers.collection import Collection
from services.podworker.handlers.desired_pods import DesiredPods
from services.podworker.ports import ContainerRuntime, PodStore, RuntimeUnavailable
from tests.support.builders import a_runtime

LONG_AGO = time.time() - 2 * SETTLED_SECONDS


@dataclass
class Known:
    """Store, engine and bus in one: who is known to whom."""

    stored: set[str] = field(default_factory=set)
    desired: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    engine_away: bool = False
    all_sources_ready: bool = True

    def all_uids(self) -> set[str]:
        return self.stored

    async def list_pods(self) -> Mapping[str, RuntimePod]:
        if self.engine_away:
            raise RuntimeUnavailable("away")
        return {uid: a_runtime() for uid in self.running}

    def __iter__(self) -> Iterator[object]:
        return iter([type("P", (), {"uid": uid}) for uid in self.desired])


@dataclass
class Place:
    """A node's directories."""

    root: Path
    known: Known = field(default_factory=Known)

    def __post_init__(self) -> None:
        self.engine = self.root / "docker" / "containers"
        self.engine.mkdir(parents=True)
        files = PodFiles(self.root / "data", self.root / "pods", self.root / "containers")
        (self.root / "cgroup" / "cpu").mkdir(parents=True)
        self.leftovers = NodeLeftovers(self.root / "data", files, PodCgroups(self.root / "cgroup"))

    def leave(self, uid: str, *, log_of: str = "c1", changed_at: float = LONG_AGO) -> None:
        """All that a pod leaves: directory, log link chain, cgroup."""
        directory = self.root / "data" / "pods" / uid
        (directory / "volumes").mkdir(parents=True)
        container = self.engine / log_of
        container.mkdir(exist_ok=True)
        (container / "x-json.log").touch()
        link = self.root / "pods" / f"default_web_{uid}" / "main" / "0.log"
        link.parent.mkdir(parents=True)
        link.symlink_to(container / "x-json.log")
        (self.root / "containers").mkdir(exist_ok=True)
        (self.root / "containers" / f"web_default_main-{log_of}.log").symlink_to(link)
        (self.root / "cgroup" / "cpu" / "kubepods" / "besteffort" / f"pod{uid}").mkdir(parents=True)
        os.utime(directory, (changed_at, changed_at))

    def left(self, uid: str) -> list[str]:
        found = [
            *(self.root / "data" / "pods").glob(uid),
            *(self.root / "pods").glob(f"*_{uid}"),
            *(self.root / "cgroup").glob(f"cpu/kubepods/*/pod{uid}"),
            *(one for one in (self.root / "containers").iterdir() if uid in str(one.readlink())),
        ]
        return [str(path.relative_to(self.root)) for path in found]

    async def sweep(self) -> None:
        known = self.known
        await Collection(
            cast(ContainerRuntime, known), self.leftovers, cast(PodStore, known), cast(DesiredPods, known)
        ).sweep()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.leftovers.close()


async def test_all_that_a_pod_left_that_is_gone_is_removed(place: Place) -> None:
    place.leave("u1")
    await place.sweep()
    assert place.left("u1") == []


@pytest.mark.parametrize("who", ["stored", "desired", "running"])
async def test_a_pod_that_anybody_knows_keeps_everything(place: Place, who: str) -> None:
    place.leave("u1")
    place.leave("u2", log_of="c2")
    getattr(place.known, who).add("u1")
    await place.sweep()
    assert len(place.left("u1")) == 4
    assert place.left("u2") == []


async def test_a_pod_that_has_just_begun_keeps_everything(place: Place) -> None:
    """Its row may be younger than the list of rows."""
    place.leave("u1", changed_at=time.time())
    await place.sweep()
    assert len(place.left("u1")) == 4


async def test_while_the_engine_is_away_nothing_is_removed(place: Place) -> None:
    place.leave("u1")
    place.known.engine_away = True
    with pytest.raises(RuntimeUnavailable):
        await place.sweep()
    assert len(place.left("u1")) == 4


async def test_a_source_that_is_not_ready_any_more_stops_the_removal(place: Place) -> None:
    """The bus's store was wiped in the middle."""
    place.leave("u1")
    place.known.all_sources_ready = False
    await place.sweep()
    assert len(place.left("u1")) == 4


async def test_a_log_directory_of_another_agent_is_left_alone(place: Place) -> None:
    """/var/log/pods is shared: only what has a directory in <data>/pods is ours."""
    other = place.root / "pods" / "kube-system_dns_u9" / "main"
    other.mkdir(parents=True)
    (other / "0.log").symlink_to(place.engine / "gone" / "x-json.log")
    await place.sweep()
    assert os.path.lexists(other / "0.log")


async def test_links_to_containers_that_are_gone_are_dropped_at_a_living_pod(place: Place) -> None:
    place.leave("u1", log_of="gone")
    place.known.stored.add("u1")
    kept = place.root / "pods" / "default_web_u1" / "main" / "1.log"
    (place.engine / "here").mkdir()
    kept.symlink_to(place.engine / "here" / "x-json.log")
    (place.engine / "gone" / "x-json.log").unlink()
    (place.engine / "gone").rmdir()
    await place.sweep()
    assert [path.name for path in kept.parent.iterdir()] == ["1.log"], "a failed start has no file, but its container"
    assert list((place.root / "containers").iterdir()) == []
    assert (place.root / "data" / "pods" / "u1").is_dir()


async def test_where_the_engines_files_cannot_be_seen_no_link_counts_as_dangling(place: Place) -> None:
    """A worker in a container."""
    place.leave("u1")
    place.known.stored.add("u1")
    place.engine.parent.rename(place.root / "elsewhere")
    await place.sweep()
    assert len(place.left("u1")) == 4


def test_an_orphan_is_whom_nobody_knows() -> None:
    assert orphans({"a", "b", "c", "d"}, stored={"a"}, desired={"b", "x"}, running={"c"}) == {"d"}
