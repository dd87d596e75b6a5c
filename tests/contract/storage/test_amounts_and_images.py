"""What pods take beside cpu and memory, what a resize may take, and which images were pulled: all in pods.db."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from services.podworker.adapters.image_records import SqliteImageRecords
from services.podworker.core.image_access import PulledImage
from services.podworker.core.model import Rejection
from services.podworker.ports import Demand, NodeLimits
from tests.contract.storage.stores import a_memory, new_store

LIMITS = NodeLimits(cpu_milli=1000, memory_bytes=1 << 30, pods=10, amounts={"ephemeral-storage": 100})


def wants(cpu: int = 0, **amounts: int) -> Demand:
    named = {name.replace("_", "-"): amount for name, amount in amounts.items()}
    return Demand(cpu_milli=cpu, memory_bytes=0, host_ports=(), amounts=named)


def test_other_resources_are_summed_over_the_pods(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    assert store.admit(a_memory("u1", "a"), b"{}", wants(ephemeral_storage=60), LIMITS) is None
    rejection = store.admit(a_memory("u2", "b", "api"), b"{}", wants(ephemeral_storage=50), LIMITS)
    assert isinstance(rejection, Rejection)
    assert (rejection.reason, rejection.message) == (
        "OutOfephemeral-storage",
        "Node didn't have enough resource: ephemeral-storage, requested: 50, used: 60, capacity: 100",
    )
    assert store.admit(a_memory("u3", "c"), b"{}", wants(ephemeral_storage=40), LIMITS) is None
    unknown = store.admit(a_memory("u4", "d", "api"), b"{}", wants(hugepages=1), LIMITS)
    assert isinstance(unknown, Rejection) and unknown.reason == "OutOfhugepages"


def test_a_resize_takes_what_others_leave(tmp_path: Path) -> None:
    """And what it took counts for the next pod; one that doesn't fit changes nothing."""
    store = new_store(tmp_path)
    one, other = a_memory("u1", "a"), a_memory("u2", "b")
    assert store.admit(one, b"{}", wants(400), LIMITS) is None
    assert store.admit(other, b"{}", wants(500), LIMITS) is None
    rejection = store.resize(replace(one, admitted=True), b"{}", wants(600), LIMITS)
    assert isinstance(rejection, Rejection)
    assert rejection.message == "Node didn't have enough resource: cpu, requested: 600, used: 500, capacity: 1000"
    assert store.resize(replace(other, admitted=True), b"{}", wants(300), LIMITS) is None
    assert store.resize(replace(one, admitted=True), b"{}", wants(600), LIMITS) is None
    assert store.admit(a_memory("u3", "c"), b"{}", wants(200), LIMITS) is not None


def pulled(*access: str, at: float = 1.0, ours: bool = True) -> PulledImage:
    return PulledImage(
        image_id="sha256:1", reference="r.test/a:1", is_ours=ours, pulled_at=at, used_at=at, access=access
    )


def test_access_to_an_image_adds_up(tmp_path: Path) -> None:
    """Who brought it first is remembered; a pull that began and never ended is told with every image."""
    new_store(tmp_path).close()
    records = SqliteImageRecords(tmp_path)
    records.begin("r.test/a:1", 1.0)
    assert [(one.image_id, one.access) for one in records.of("sha256:1")] == [("", ())]
    records.pulled(pulled("a"))
    records.pulled(pulled("b", at=2.0, ours=False))
    assert records.of("sha256:1") == [pulled("a", "b", at=2.0)]
    records.used(["sha256:1"], 5.0)
    assert [one.used_at for one in records.all()] == [5.0]
    records.begin("r.test/b:1", 1.0)
    records.give_up("r.test/b:1")
    records.forget(records.all())
    assert records.of("sha256:1") == []
    records.close()
