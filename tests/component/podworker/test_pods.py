"""podworker's shell: real bus, real pods.db, the model engine; faults of each kind in between."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from cli.db import db_upgrade
from shared.bus import BusUnavailable
from shared.contracts.registry import POD_DESIRED, POD_REPORT
from tests.component.podworker.worker_on_model import (
    Desired,
    Worker,
    is_running,
    pod_body,
    running,
    start_worker,
)
from tests.support.eventually import eventually_async
from tests.support.model_runtime import ModelRuntime
from tests.support.nats_server import NatsServer

pytestmark = pytest.mark.nats


async def test_a_desired_pod_runs_and_a_removed_one_leaves_nothing(
    engine: ModelRuntime, desired: Desired, worker: Worker
) -> None:
    await desired.put("a", "u1")
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    await desired.drop("u1")

    def gone() -> bool:
        return not engine.containers and not engine.sandboxes and "u1" not in desired.reports

    await eventually_async(gone, within=15)


async def test_a_new_version_waits_until_the_old_one_has_ended(
    engine: ModelRuntime, desired: Desired, worker: Worker
) -> None:
    """W11. An edited static pod has a new UID; the old one ignores TERM."""
    stubborn = pod_body("a", "u1", annotations={"model/ignore-term": "true"})
    await desired.put("a", "u1", stubborn)
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    await desired.put("a", "u2", seen=2.0)
    await desired.drop("u1")
    overlaps: list[str] = []

    def replaced() -> bool:
        if engine.live_sandboxes("u1") and engine.live_sandboxes("u2"):
            overlaps.append("both live")
        return is_running(desired, "u2")

    await eventually_async(replaced, within=20)
    assert not overlaps
    assert not running(engine, "u1")


async def test_of_two_edits_in_the_old_ones_grace_only_the_newest_starts(
    engine: ModelRuntime, desired: Desired, worker: Worker
) -> None:
    await desired.put("a", "u1", pod_body("a", "u1", annotations={"model/ignore-term": "true"}))
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    await desired.put("a", "u2", seen=2.0)
    await desired.drop("u1")
    await desired.put("a", "u3", seen=3.0)
    await desired.drop("u2")
    await eventually_async(lambda: is_running(desired, "u3"), within=20)
    assert not any("_u2_" in name for _, name in engine.calls)


async def test_a_new_worker_adopts_what_runs(
    nats_server: NatsServer, engine: ModelRuntime, data: Path, desired: Desired, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the row nor its loss makes a difference: the same containers run on."""
    first = await start_worker(nats_server, data, monkeypatch)
    await desired.put("a", "u1")
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    containers = set(engine.containers)
    await first.stop()
    for path in data.glob("pods.db*"):
        path.unlink()
    db_upgrade(data)
    engine.calls.clear()
    second = await start_worker(nats_server, data, monkeypatch)

    await eventually_async(lambda: desired.reports["u1"].rev == 1, within=10)  # a new database counts anew
    assert set(engine.containers) == containers
    assert not engine.calls
    await second.stop()


async def test_nothing_is_ended_before_every_source_was_seen(
    nats_server: NatsServer, engine: ModelRuntime, data: Path, desired: Desired, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An orphan goes only when the source's list is there; a wiped store is no list."""
    first = await start_worker(nats_server, data, monkeypatch)
    await desired.put("a", "u1")
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    await first.stop()
    for path in data.glob("pods.db*"):
        path.unlink()
    db_upgrade(data)
    nats_server.stop()
    nats_server.wipe()
    nats_server.start()
    desired.pods.clear()
    second = await start_worker(nats_server, data, monkeypatch)
    await eventually_async(lambda: second.service.facts()["slots"] == 256, within=10)
    await eventually_async(lambda: second.service.facts()["pods"] == 1, within=10)
    assert running(engine, "u1")
    await eventually_async(lambda: desired.bus.connected, within=10)
    await desired.mark()
    await eventually_async(lambda: not engine.containers and not engine.sandboxes, within=15)
    await second.stop()


async def test_an_edited_pod_waits_for_the_old_one_also_when_the_rows_were_lost(
    nats_server: NatsServer, engine: ModelRuntime, data: Path, desired: Desired, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await start_worker(nats_server, data, monkeypatch)
    await desired.put("a", "u1", pod_body("a", "u1", annotations={"model/ignore-term": "true"}))
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    await first.stop()
    for path in data.glob("pods.db*"):
        path.unlink()
    db_upgrade(data)
    await desired.put("a", "u2", seen=2.0)
    await desired.drop("u1")
    second = await start_worker(nats_server, data, monkeypatch)
    overlaps = []

    def replaced() -> bool:
        if engine.live_sandboxes("u1") and engine.live_sandboxes("u2"):
            overlaps.append("both live")
        return is_running(desired, "u2")

    await eventually_async(replaced, within=20)
    assert not overlaps
    assert not running(engine, "u1")
    await second.stop()


async def test_a_wiped_store_changes_nothing_and_is_filled_again(
    nats_server: NatsServer, engine: ModelRuntime, desired: Desired, worker: Worker
) -> None:
    await desired.put("a", "u1")
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    before = set(engine.containers)
    nats_server.stop()
    nats_server.wipe()
    nats_server.start()
    await eventually_async(lambda: desired.bus.connected, within=10)
    await eventually_async(lambda: is_running(desired, "u1"), within=15)
    assert set(engine.containers) == before
    await desired.again()
    await desired.put("b", "u2")
    await eventually_async(lambda: is_running(desired, "u2"), within=15)
    assert before < set(engine.containers)


async def test_a_rejected_pod_starts_when_what_it_lacked_is_free(
    engine: ModelRuntime, desired: Desired, worker: Worker
) -> None:
    """design 7: a rejected static pod is tried again when the cause may have gone."""
    port = [{"containerPort": 80, "hostPort": 18093}]
    await desired.put("holder", "u1", pod_body("holder", "u1", ports=port))
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    await desired.put("second", "u2", pod_body("second", "u2", ports=port))

    def rejected() -> bool:
        report = desired.reports.get("u2")
        return report is not None and (report.status.phase, report.status.reason) == ("Failed", "NodePorts")

    await eventually_async(rejected, within=10)
    await desired.drop("u1")
    await eventually_async(lambda: is_running(desired, "u2"), within=15)


async def test_a_pod_put_back_while_it_ends_starts_again(
    engine: ModelRuntime, desired: Desired, worker: Worker
) -> None:
    """The same UID: the termination can't be undone, so it ends first."""
    await desired.put("a", "u1", pod_body("a", "u1", annotations={"model/ignore-term": "true"}))
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    first = set(engine.containers)
    await desired.drop("u1")
    await eventually_async(lambda: any(c.signals for c in engine.containers.values()), within=10)
    await desired.put("a", "u1")
    await eventually_async(lambda: running(engine, "u1") and not first & set(engine.containers), within=20)
    await eventually_async(lambda: is_running(desired, "u1"), within=10)


async def test_a_bus_that_was_rolled_back_starts_no_pod_that_has_ended(
    nats_server: NatsServer, engine: ModelRuntime, data: Path, desired: Desired, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restored store shows the pod as wanted, by its list, too; so does the view of a worker that is behind. Wanted
    anew by its source, the same UID starts again."""
    first = await start_worker(nats_server, data, monkeypatch)
    await desired.put("a", "u1")
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    nats_server.stop()
    shutil.copytree(nats_server.directory / "store", data / "old")
    nats_server.start()
    await desired.again()
    old = desired.pods["u1"]
    await desired.drop("u1")
    await eventually_async(lambda: not engine.containers and not engine.sandboxes, within=15)
    await eventually_async(lambda: first.service.facts()["pods"] == 0, within=10)
    nats_server.stop()
    nats_server.wipe()
    shutil.copytree(data / "old", nats_server.directory / "store")
    engine.calls.clear()
    nats_server.start()
    await eventually_async(lambda: first.service.facts()["pods"] == 1, within=15)  # it sees the pod
    await first.stop()
    second = await start_worker(nats_server, data, monkeypatch)
    await eventually_async(lambda: second.service.facts()["pods"] == 1, within=15)
    await eventually_async(lambda: desired.bus.connected, within=10)
    other = msgspec.structs.replace(old, uid="u2", name="b", body=msgspec.Raw(pod_body("b", "u2")))

    async def take_other() -> bool:
        try:
            return bool(await desired.bus.put(POD_DESIRED, other, "u2"))
        except BusUnavailable:
            return False

    await eventually_async(take_other, within=10)
    await eventually_async(lambda: is_running(desired, "u2"), within=15)
    assert not any("_u1_" in name for _, name in engine.calls)
    await desired.put("a", "u1")
    await eventually_async(lambda: running(engine, "u1"), within=15)
    await second.stop()


async def test_the_engine_may_go_and_come(engine: ModelRuntime, desired: Desired, worker: Worker) -> None:
    engine.unavailable = True
    await desired.put("a", "u1")
    engine.unavailable = False
    await eventually_async(lambda: is_running(desired, "u1"), within=15)


async def test_two_workers_share_the_pods_and_each_has_one_owner(
    nats_server: NatsServer, engine: ModelRuntime, data: Path, desired: Desired, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the pods of one that dies go on at the other."""
    one = await start_worker(nats_server, data, monkeypatch, number=0)
    two = await start_worker(nats_server, data, monkeypatch, number=1)
    await eventually_async(lambda: int(str(two.service.facts()["slots"])) > 0, within=15)
    for number in range(20):
        await desired.put(f"p{number}", f"u{number}")

    def all_run() -> bool:
        return all(is_running(desired, uid) for uid in desired.pods)

    await eventually_async(all_run, within=20)
    owned = [int(str(w.service.facts()["slots"])) for w in (one, two)]
    assert sum(owned) == 256
    assert sum(int(str(w.service.facts()["pods"])) for w in (one, two)) == 20
    containers = set(engine.containers)
    await one.stop()
    await eventually_async(lambda: two.service.facts()["slots"] == 256, within=10)
    await eventually_async(lambda: two.service.facts()["pods"] == 20, within=10)
    assert set(engine.containers) == containers
    await two.stop()


async def test_a_key_whose_owner_died_before_it_withdrew_it_goes_with_the_next_owner(
    nats_server: NatsServer, engine: ModelRuntime, data: Path, desired: Desired, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await start_worker(nats_server, data, monkeypatch, number=0)
    two = await start_worker(nats_server, data, monkeypatch, number=1)
    await eventually_async(lambda: int(str(two.service.facts()["slots"])) > 0, within=15)
    await desired.put("p", "u1")
    await eventually_async(lambda: is_running(desired, "u1"), within=15)
    await one.bus.put(POD_REPORT, msgspec.structs.replace(desired.reports["u1"], uid="gone", name="gone"), "gone")
    await eventually_async(lambda: "gone" in desired.reports, within=5)
    await one.stop()
    await eventually_async(lambda: "gone" not in desired.reports, within=15)
    assert is_running(desired, "u1")
    await two.stop()
