"""Which images are collected, in which order, and when it is enough."""

from __future__ import annotations

from services.podworker.core.image_access import PulledImage
from services.podworker.core.image_gc import Disk, GcPolicy, LocalImage, gone_records, image_sweep

FULL = Disk(capacity=1000, available=100)
POLICY = GcPolicy()
NOW = 10_000.0


def image(name: str, *tags: str, size: int = 60) -> LocalImage:
    return LocalImage(id=f"sha256:{name}", tags=tags or (f"r.test/{name}:1",), size=size)


def record(name: str, reference: str = "", *, pulled: float = 0, used: float = 0, ours: bool = True) -> PulledImage:
    return PulledImage(
        image_id=f"sha256:{name}",
        reference=reference or f"r.test/{name}:1",
        is_ours=ours,
        pulled_at=pulled,
        used_at=used,
    )


def removed(images: list[LocalImage], records: list[PulledImage], *used: str, disk: Disk | None = FULL) -> list[str]:
    ids = {f"sha256:{name}" for name in used}
    sweep = image_sweep(images, records, ids, now=NOW, disk=disk, policy=POLICY)
    return [one.image_id.removeprefix("sha256:") for one in sweep.removals]


def test_below_the_threshold_nothing_goes() -> None:
    assert removed([image("a")], [record("a")], disk=Disk(capacity=1000, available=160)) == []
    assert removed([image("a")], [record("a")], disk=None) == []
    assert removed([image("a")], [record("a")], disk=Disk(capacity=1000, available=150)) == ["a"]


def test_unused_images_go_the_longest_unused_first() -> None:
    """D06."""
    images = [image("new"), image("old"), image("older"), image("used"), image("young")]
    records = [
        record("new", used=NOW - 200),
        record("old", used=NOW - 500),
        record("older", used=NOW - 900),
        record("used"),
        record("young", pulled=NOW - 119),
    ]
    assert removed(images, records, "used") == ["older", "old", "new"]


def test_so_much_goes_that_the_low_threshold_is_reached() -> None:
    sweep = image_sweep([image("a")], [record("a")], (), now=NOW, disk=FULL, policy=POLICY)
    assert (sweep.usage_percent, sweep.to_free) == (90, 100)


def test_a_threshold_of_100_turns_it_off() -> None:
    policy = GcPolicy(high_percent=100)
    disk = Disk(capacity=1000, available=0)
    assert image_sweep([image("a")], [record("a")], (), now=NOW, disk=disk, policy=policy).removals == ()


def test_images_that_podbus_has_not_pulled_stay() -> None:
    assert removed([image("a"), image("b")], [record("b", ours=False)]) == []


def test_an_old_image_goes_however_empty_the_disk_is() -> None:
    policy = GcPolicy(max_age=1000)
    records = [record("a", used=NOW - 1001), record("b", used=NOW - 999)]
    sweep = image_sweep([image("a"), image("b")], records, (), now=NOW, disk=None, policy=policy)
    assert [(one.image_id, one.is_old) for one in sweep.removals] == [("sha256:a", True)]


def test_a_name_that_somebody_else_has_given_it_stays() -> None:
    shared = image("a", "docker.io/library/a:1", "mine:1")
    (one,) = image_sweep([shared], [record("a", "a:1")], (), now=NOW, disk=FULL, policy=POLICY).removals
    assert (one.tags, one.whole) == (("docker.io/library/a:1",), False)
    untagged = LocalImage(id="sha256:a", tags=(), size=1)
    (one,) = image_sweep([untagged], [record("a", "a@sha256:1")], (), now=NOW, disk=FULL, policy=POLICY).removals
    assert (one.tags, one.whole) == ((), True)


def test_records_of_images_that_are_gone_are_known() -> None:
    assert gone_records([record("a"), record("b")], {"sha256:b": image("b")}) == [record("a")]
