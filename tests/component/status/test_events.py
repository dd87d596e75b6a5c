"""The event history: what is acknowledged is kept, whatever happens to the process, and counted once."""

from __future__ import annotations

import asyncio
import resource
import signal

import pytest

from shared.bus import BusUnavailable, RemoteError
from shared.runtime.restart_event import REASON
from tests.component.status.callers import Callers, an_event
from tests.support.eventually import eventually_async
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.nats

DYING = """
import os, signal, sys
from services.status.adapters.event_store import SqliteEventStore
from services.status.app import build
from shared.runtime.service import run

record = SqliteEventStore.record

def record_and_die(self, events, now):
    if {after}:
        record(self, events, now)
    os.kill(os.getpid(), signal.SIGKILL)

SqliteEventStore.record = record_and_die
sys.exit(run("status", build))
"""
RESTARTED = """
import sys
from services.{service}.app import build
from shared.runtime.service import run
sys.exit(run("{service}", build, restart_reason="was ended by SIGKILL"))
"""


async def test_what_is_handed_over_is_acknowledged_and_told_newest_last(
    status: ServiceProcess, callers: Callers
) -> None:
    await asyncio.to_thread(status.start)
    batch = [an_event("e2", message="second", when=20.0), an_event("e1", message="first", when=10.0)]
    assert await callers.hand_over(batch) == ["e2", "e1"]
    assert await callers.pod_events() == [("first", 1), ("second", 1)]


async def test_the_same_event_again_is_counted_and_the_same_id_is_not(status: ServiceProcess, callers: Callers) -> None:
    await asyncio.to_thread(status.start)
    await callers.hand_over([an_event("e1", when=10.0), an_event("e2", when=20.0)])
    assert await callers.hand_over([an_event("e1", when=10.0), an_event("e3", when=30.0)]) == ["e1", "e3"]
    (event,) = await callers.events(namespace="default", name="web")
    assert (event.count, event.first_seen, event.last_seen) == (3, 10.0, 30.0)


async def test_a_question_narrows_by_namespace_name_and_uid_and_takes_the_newest(
    status: ServiceProcess, callers: Callers
) -> None:
    await asyncio.to_thread(status.start)
    await callers.hand_over(
        [
            an_event("e1", name="web", message="a", when=10.0),
            an_event("e2", name="db", message="b", when=20.0),
            an_event("e3", name="web", message="c", when=30.0),
        ]
    )
    assert [e.message for e in await callers.events(namespace="default")] == ["a", "b", "c"]
    assert [e.message for e in await callers.events(uid="uid-web")] == ["a", "c"]
    assert [e.message for e in await callers.events(namespace="default", limit=2)] == ["b", "c"]
    assert await callers.events(namespace="other") == []
    with pytest.raises(RemoteError, match="limit") as refused:
        await callers.events(limit=0)
    assert refused.value.code == "invalid"


async def test_a_reply_that_would_be_too_large_holds_the_newest(status: ServiceProcess, callers: Callers) -> None:
    await asyncio.to_thread(status.start)
    for number in range(40):
        message = f"{number} " + "x" * 50_000
        await callers.hand_over([an_event(f"e{number}", message=message, name=f"p{number}", when=number + 1.0)])
    found = [event.message.split()[0] for event in await callers.events(namespace="default")]
    assert found == [str(number) for number in range(40 - len(found), 40)] and 5 < len(found) < 40


@pytest.mark.parametrize("after", [True, False], ids=["after the commit", "before the commit"])
async def test_a_kill_before_the_acknowledgement_loses_and_doubles_nothing(
    status: ServiceProcess, callers: Callers, after: bool
) -> None:
    """The producer doesn't know which of the two it was: it hands over again."""
    await asyncio.to_thread(status.start, DYING.format(after=after))
    batch = [an_event("e1"), an_event("e2"), an_event("e3", message="other")]
    with pytest.raises(BusUnavailable):
        await callers.hand_over(batch, within=2.0)
    assert status.wait() == -signal.SIGKILL
    await asyncio.to_thread(status.start)
    assert sorted(await callers.pod_events()) == ([("Started container c", 2), ("other", 1)] if after else [])
    assert await callers.hand_over(batch) == ["e1", "e2", "e3"]
    assert sorted(await callers.pod_events()) == [("Started container c", 2), ("other", 1)]


async def test_kills_under_load_lose_and_double_nothing(status: ServiceProcess, callers: Callers) -> None:
    await asyncio.to_thread(status.start)
    done = asyncio.Event()

    async def produce() -> None:
        for number in range(0, 400, 10):
            batch = [an_event(f"e{n}", message=f"{n % 7}", name=f"p{number}") for n in range(number, number + 10)]
            while True:
                try:
                    assert len(await callers.hand_over(batch, within=1.0)) == 10
                    break
                except (BusUnavailable, RemoteError):
                    await asyncio.sleep(0.02)
        done.set()

    producer = asyncio.create_task(produce())
    for _ in range(3):
        await eventually_async(lambda: callers.events(namespace="default"), within=10)
        status.kill()
        await asyncio.to_thread(status.start)
    await asyncio.wait_for(producer, 30)
    assert sum(event.count for event in await callers.events(namespace="default")) == 400


async def test_a_full_disk_keeps_events_with_their_producer_until_there_is_room(
    status: ServiceProcess, callers: Callers
) -> None:
    await asyncio.to_thread(status.start)
    await callers.hand_over([an_event("e1", message="before")])
    hard = resource.prlimit(status.pid, resource.RLIMIT_FSIZE)[1]
    wal = (status.data / "status.db-wal").stat().st_size
    resource.prlimit(status.pid, resource.RLIMIT_FSIZE, (wal, hard))
    batch = [an_event(f"big{n}", message=f"{n} " + "x" * 2000, name=f"p{n}") for n in range(1, 200)]
    with pytest.raises(RemoteError) as refused:
        await callers.hand_over(batch)
    assert refused.value.code == "unavailable" and "status.db" in refused.value.message
    assert await callers.pod_events() == [("before", 1)]
    resource.prlimit(status.pid, resource.RLIMIT_FSIZE, (hard, hard))
    assert len(await callers.hand_over(batch)) == 199
    assert len(await callers.events(namespace="default")) == 200


async def test_a_restarted_service_tells_so(status: ServiceProcess, callers: Callers) -> None:
    await asyncio.to_thread(status.start, RESTARTED.format(service="status"))
    (event,) = [e for e in await callers.events(name="n1") if e.reason == REASON]
    assert (event.type, event.message) == ("Warning", "status was ended by SIGKILL and was started again")
    assert "Starting" not in await callers.node_events()


@pytest.mark.parametrize("service", ["source", "stats"])
async def test_another_restarted_service_tells_so_through_status(
    status: ServiceProcess, callers: Callers, service: str
) -> None:
    """Also when status comes later."""
    other = ServiceProcess(
        service,
        status.data,
        status.nats,
        environment={"PODBUS_MANIFESTS": str(status.data / "manifests")},
    )
    await asyncio.to_thread(other.start, RESTARTED.format(service=service))
    try:
        await asyncio.to_thread(status.start)

        async def told() -> list[str]:
            return [e.message for e in await callers.events(name="n1") if e.reason == REASON]

        await eventually_async(told, within=10)
        assert await told() == [f"{service} was ended by SIGKILL and was started again"]
    finally:
        other.close()
