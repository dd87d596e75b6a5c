"""Rules of a pod's worker (lifecycle 2) on the shell: what a dead one leaves, what stays finished, who has to wait."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cli.db import db_upgrade
from shared.contracts.pods import SourceMarker
from shared.contracts.registry import SOURCE_MARKER
from tests.component.podworker.worker_on_model import (
    Desired,
    Worker,
    is_running,
    phase,
    pod_body,
    running,
    start_worker,
)
from tests.support.eventually import eventually_async
from tests.support.model_runtime import ModelRuntime
from tests.support.nats_server import NatsServer

pytestmark = pytest.mark.nats


async def a_pod_that_succeeded(engine: ModelRuntime, desired: Desired) -> None:
    await desired.put("a", "u1", pod_body("a", "u1", command=("sh", "-c", "exit 0"), restartPolicy="Never"))
    await eventually_async(lambda: running(engine, "u1") or phase(desired, "u1") == "Succeeded", within=10)

    def over() -> bool:
        engine.tick()
        return phase(desired, "u1") == "Succeeded" and not engine.live_sandboxes("u1")

    await eventually_async(over, within=10)


async def test_a_pod_whose_start_does_not_come_back_delays_no_other(
    engine: ModelRuntime, desired: Desired, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W02: each pod has a task of its own."""
    start, starting, go_on = engine.start_container, asyncio.Event(), asyncio.Event()

    async def slow(container_id: str) -> None:
        if engine.containers[container_id].config.uid == "u1":
            starting.set()
            await go_on.wait()
        await start(container_id)

    monkeypatch.setattr(engine, "start_container", slow)
    await desired.put("a", "u1")
    await asyncio.wait_for(starting.wait(), 10)
    await desired.put("b", "u2")
    await eventually_async(lambda: is_running(desired, "u2"), within=10)
    assert not running(engine, "u1")
    go_on.set()
    await eventually_async(lambda: is_running(desired, "u1"), within=10)


async def test_a_killed_worker_changes_nothing_of_a_pod(
    nats_server: NatsServer, engine: ModelRuntime, data: Path, desired: Desired, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W03: containers, restart counts and addresses stay, and the phase was Running all the time."""
    first = await start_worker(nats_server, data, monkeypatch)
    await desired.put("a", "u1")
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    (container,) = engine.containers.values()
    container.exits_at = container.created_at
    engine.tick()

    def restarted() -> bool:
        status = desired.reports["u1"].status
        return is_running(desired, "u1") and [c.restart_count for c in status.container_statuses] == [1]

    await eventually_async(lambda: restarted() and bool(running(engine, "u1")), within=15)
    await eventually_async(lambda: desired.reports["u1"].status.container_statuses[0].ready, within=10)
    before = desired.reports["u1"].status
    await first.die()
    engine.calls.clear()
    second = await start_worker(nats_server, data, monkeypatch)
    await eventually_async(lambda: second.service.facts()["slots"] == 256, within=10)
    await desired.put("b", "u2")
    await eventually_async(lambda: is_running(desired, "u2"), within=15)
    assert desired.reports["u1"].status == before
    assert not any("_u1_" in name for _, name in engine.calls)
    await second.stop()


@pytest.mark.parametrize("leaves", ["everything", "nothing on the engine"])
async def test_a_pod_that_ran_to_its_end_is_not_run_again(
    nats_server: NatsServer,
    engine: ModelRuntime,
    data: Path,
    desired: Desired,
    monkeypatch: pytest.MonkeyPatch,
    leaves: str,
) -> None:
    """Finished stays known while the pod is wanted: neither the next worker nor `docker rm` starts it anew."""
    first = await start_worker(nats_server, data, monkeypatch)
    await a_pod_that_succeeded(engine, desired)
    await first.stop()
    if leaves != "everything":
        engine.containers.clear()
        engine.sandboxes.clear()
    engine.calls.clear()
    second = await start_worker(nats_server, data, monkeypatch)
    await desired.put("b", "u2")
    await eventually_async(lambda: is_running(desired, "u2"), within=15)
    assert phase(desired, "u1") == "Succeeded"
    assert not any(verb.startswith(("run_", "create_", "start_")) and "_u1_" in name for verb, name in engine.calls)
    await second.stop()


async def test_a_file_taken_out_and_put_back_later_runs_the_same_uid_again(
    engine: ModelRuntime, desired: Desired, worker: Worker
) -> None:
    """S12: it's the source that wants it anew, with a newer generation."""
    await desired.put("a", "u1")
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    await desired.drop("u1")
    await eventually_async(lambda: "u1" not in desired.reports and not engine.sandboxes, within=15)
    await desired.put("a", "u1")
    await eventually_async(lambda: is_running(desired, "u1") and running(engine, "u1"), within=15)


async def test_a_pod_that_waits_for_its_name_is_dropped_when_it_is_taken_away(
    engine: ModelRuntime, desired: Desired, worker: Worker
) -> None:
    """Nothing of it was ever there, so nothing has to end; the pod that holds the name ends by its own grace."""
    await desired.put("a", "u1", pod_body("a", "u1", annotations={"model/ignore-term": "true"}))
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    await desired.put("a", "u2", seen=2.0)
    await eventually_async(lambda: worker.service.facts()["pods"] == 2, within=10)
    await desired.drop("u2")
    await eventually_async(lambda: worker.service.facts()["pods"] == 1, within=10)
    assert running(engine, "u1")
    assert not any("_u2_" in name for _, name in engine.calls)


async def test_an_orphan_waits_for_the_source_that_has_not_answered(
    nats_server: NatsServer, engine: ModelRuntime, data: Path, desired: Desired, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S20: the directory's list is there, the URL's isn't; what nobody lists may be the URL's."""
    first = await start_worker(nats_server, data, monkeypatch)
    await desired.put("a", "u1")
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    await first.stop()
    for path in data.glob("pods.db*"):
        path.unlink()
    db_upgrade(data)
    await desired.drop("u1")
    second = await start_worker(nats_server, data, monkeypatch, url="http://192.0.2.1/pods")
    await desired.put("b", "u2")
    await eventually_async(lambda: is_running(desired, "u2"), within=15)
    await eventually_async(lambda: second.service.facts()["pods"] == 2, within=10)
    assert running(engine, "u1")
    answered = SourceMarker(v=1, node="n1", ts=1.0, source="http", ready=True, epoch="e", uids=[])
    await desired.bus.put(SOURCE_MARKER, answered, "http")
    await eventually_async(lambda: not running(engine, "u1") and running(engine, "u2"), within=15)
    await second.stop()
