"""A pod of the API: told to end by the server's own deadline, seen until the server lets it go, refused out loud."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from cli.db import db_upgrade
from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.core.model import PodMemory
from services.podworker.handlers.pod_task import PodTask
from shared.contracts.pods import SourceMarker
from shared.contracts.registry import POD_DESIRED, SOURCE_MARKER
from shared.kube.ids import SLOTS
from tests.support.builders import UID, a_container, a_pod
from tests.support.eventually import eventually_async
from tests.support.model_runtime import ModelRuntime
from tests.support.pod_tasks import a_task, delete_in_api


def memory_of(task: PodTask) -> PodMemory:
    assert task.record.memory is not None
    return task.record.memory


def is_running(engine: ModelRuntime) -> Callable[[], bool]:
    return lambda: any(container.is_running for container in engine.containers.values())


def let_go(task: PodTask) -> None:
    """The server has dropped the pod, and so has its source."""
    task.context.desired.on_change(POD_DESIRED.key(UID), None)
    marker = SourceMarker(v=1, node="n1", ts=1.0, source="api", ready=True, epoch="e", uids=[])
    task.context.desired.on_change(SOURCE_MARKER.key("api"), msgspec.json.encode(marker))
    task.wake()


async def test_a_deletion_ends_the_pod_with_its_grace_and_its_record_stays_until_the_server_drops_it(
    tmp_path: Path,
) -> None:
    """W09, and 6: the delete flow."""
    db_upgrade(tmp_path)
    engine, store = ModelRuntime(time.time), SqlitePodStore(tmp_path)
    task = a_task(engine, store, a_pod(a_container("a"), terminationGracePeriodSeconds=60), source="api")
    running = asyncio.create_task(task.run())
    await eventually_async(is_running(engine), within=10)
    delete_in_api(task, 4)
    await eventually_async(lambda: memory_of(task).terminated_at is not None, within=20)
    termination = memory_of(task).termination
    assert termination is not None and (termination.grace, termination.reason) == (4, "deleted")
    await eventually_async(lambda: not engine.containers and not engine.sandboxes, within=20)
    task.wake()
    await eventually_async(lambda: bool(store.load_slots(range(SLOTS))), within=5)
    assert not running.done()
    status = memory_of(task).status
    assert status is not None and status.phase in ("Failed", "Succeeded")
    let_go(task)
    await asyncio.wait_for(running, 10)
    assert not store.load_slots(range(SLOTS))


async def test_a_pod_that_vanishes_from_the_list_ends_with_the_grace_of_its_spec(tmp_path: Path) -> None:
    """W09: a force delete."""
    db_upgrade(tmp_path)
    engine, store = ModelRuntime(time.time), SqlitePodStore(tmp_path)
    task = a_task(engine, store, a_pod(a_container("a"), terminationGracePeriodSeconds=7), source="api")
    running = asyncio.create_task(task.run())
    await eventually_async(is_running(engine), within=10)
    graces = []
    save = task.context.recorder.save

    def seen(record: object, memory: PodMemory, events: object) -> None:
        graces.append(memory.termination.grace if memory.termination else None)
        save(record, memory, events)  # type: ignore[arg-type]

    task.context.recorder.save = seen  # type: ignore[method-assign]
    let_go(task)
    await asyncio.wait_for(running, 20)
    assert 7 in graces


async def test_a_pod_that_never_started_ends_failed(tmp_path: Path) -> None:
    """W10"""
    db_upgrade(tmp_path)
    engine, store = ModelRuntime(time.time), SqlitePodStore(tmp_path)
    engine.local_images.clear()
    task = a_task(engine, store, a_pod(a_container("a", image="none:1", imagePullPolicy="Never")), source="api")
    running = asyncio.create_task(task.run())
    await eventually_async(lambda: task.record.memory is not None and bool(memory_of(task).waiting), within=10)
    delete_in_api(task, 30)
    await eventually_async(lambda: memory_of(task).terminated_at is not None, within=20)
    await eventually_async(lambda: (s := memory_of(task).status) is not None and s.phase == "Failed", within=10)
    assert not engine.containers
    let_go(task)
    await asyncio.wait_for(running, 10)


async def test_a_shorter_grace_shortens_what_is_under_way(tmp_path: Path) -> None:
    db_upgrade(tmp_path)
    engine, store = ModelRuntime(time.time), SqlitePodStore(tmp_path)
    task = a_task(engine, store, source="api")
    delete_in_api(task, 600)
    delete_in_api(task, 5)
    taken = task._wanted.taken(None)
    assert taken is not None and taken.termination is not None and taken.termination.grace == 5
    delete_in_api(task, 300)
    task.record.memory = taken
    again = task._wanted.taken(None)
    assert again is not None and again.termination == taken.termination


async def test_what_its_source_refuses_is_seen_as_failed(tmp_path: Path) -> None:
    db_upgrade(tmp_path)
    engine, store = ModelRuntime(time.time), SqlitePodStore(tmp_path)
    task = a_task(engine, store, source="api", refused="spec.volumes[0].nfs: not supported")
    running = asyncio.create_task(task.run())
    await eventually_async(lambda: task.record.memory is not None and memory_of(task).status is not None, within=10)
    status = memory_of(task).status
    assert status is not None
    assert (status.phase, status.reason) == ("Failed", "NotSupported")
    assert "spec.volumes[0].nfs" in status.message
    assert not engine.containers
    running.cancel()
    await asyncio.wait([running], timeout=10)
