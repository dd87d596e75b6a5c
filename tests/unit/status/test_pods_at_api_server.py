"""Statuses, final deletes, pictures and events against an API server in memory, in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from services.status.core.aggregate import Tally
from services.status.handlers.api_events import WAITING_MOST, ApiEvents
from services.status.handlers.known_pods import KnownPods
from services.status.handlers.mirror_pods import MirrorPods
from services.status.handlers.pod_statuses import RETRY_SECONDS, PodStatuses
from shared.contracts.examples import EVENT, MARKER, UID
from shared.contracts.pods import MirrorPod, PodDesired
from shared.contracts.registry import POD_DESIRED, POD_REPORT, SOURCE_MARKER
from shared.contracts.status import PodReport
from tests.support.model_api_server import ModelApiServer
from tests.support.virtual_loop import run_virtually

POD = "/api/v1/namespaces/default/pods/web-n1"
EVENTS = "/api/v1/namespaces/default/events"
REPORT = POD_REPORT.example
DESIRED = replace(POD_DESIRED.example, source="api")
BODY = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-n1", "namespace": "default", "uid": UID},
    "spec": {"containers": []},
}


class Joined:
    def __init__(self, server: ModelApiServer) -> None:
        self.server = server
        self.pods = KnownPods()
        rng = Random(1)
        self.statuses = PodStatuses(server, self.pods, rng)
        self.mirrors = MirrorPods(server, self.pods, "n1", lambda: "node-uid", rng)
        self.events = ApiEvents(server, "n1", rng)

    def want(self, pod: PodDesired) -> None:
        self.pods.on_pods_change(POD_DESIRED.key(pod.uid), msgspec.json.encode(pod))

    def report(self, report: PodReport) -> None:
        self.pods.on_status_change(POD_REPORT.key(report.uid), msgspec.json.encode(report))

    def mark(self, *mirrors: MirrorPod) -> None:
        for source in ("file", "api"):
            marker = replace(MARKER, source=source, mirrors=list(mirrors) if source == "api" else [])
            self.pods.on_pods_change(SOURCE_MARKER.key(source), msgspec.json.encode(marker))

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.objects[POD].get("status", {})
        return found


def play(script: Callable[[Joined, ModelApiServer], Awaitable[None]], *, has_pod: bool = True) -> ModelApiServer:
    async def main() -> ModelApiServer:
        server = ModelApiServer(asyncio.get_running_loop().time)
        if has_pod:
            server.put_object(POD, BODY)
        joined = Joined(server)
        tasks = [asyncio.create_task(run()) for run in (joined.statuses.run, joined.mirrors.run, joined.events.run)]
        await script(joined, server)
        assert not any(task.done() for task in tasks), [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        return server

    return run_virtually(main)


def restarted(count: int) -> PodReport:
    (container,) = REPORT.status.container_statuses
    return replace(
        REPORT,
        rev=REPORT.rev + count,
        status=replace(REPORT.status, container_statuses=[replace(container, restart_count=count)]),
    )


def test_after_an_outage_the_newest_status_is_told_once() -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        joined.want(DESIRED)
        joined.report(REPORT)
        await asyncio.sleep(1)
        assert joined.status()["phase"] == "Running"
        server.is_down = True
        for count in range(1, 100):
            joined.report(restarted(count))
            await asyncio.sleep(2)
        server.is_down = False
        before = server.count("PATCH", "/status")
        await asyncio.sleep(15)
        assert joined.status()["containerStatuses"][0]["restartCount"] == 99
        assert server.count("PATCH", "/status") == before + 1

    play(script)


def test_a_pod_that_has_ended_is_told_so_and_then_let_go() -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        joined.want(replace(DESIRED, deletion_grace=2))
        joined.report(replace(REPORT, state="terminating"))
        await asyncio.sleep(1)
        assert server.count("DELETE") == 0
        over = replace(REPORT.status, phase="Succeeded")
        joined.report(replace(REPORT, state="finished", containers=[], status=over))
        await asyncio.sleep(1)
        assert POD not in server.objects
        patch, delete = server.calls[-2:]
        assert (patch.method, patch.body["status"]["phase"]) == ("PATCH", "Succeeded")
        assert delete.body["preconditions"] == {"uid": UID} and delete.body["gracePeriodSeconds"] == 0

    play(script)


def test_another_pod_of_that_name_is_not_touched() -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        server.put_object(POD, {**BODY, "metadata": {**BODY["metadata"], "uid": "other"}})  # type: ignore[dict-item]
        joined.want(replace(DESIRED, deletion_grace=0))
        joined.report(replace(REPORT, state="finished", containers=[]))
        await asyncio.sleep(60)
        assert server.count("PATCH") == server.count("DELETE") == 0

    play(script, has_pod=False)


def test_a_refused_status_is_tried_again_and_again_but_not_more_often_for_news() -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        server.refusals["PATCH", POD] = 422
        joined.want(DESIRED)
        for count in range(20):
            joined.report(restarted(count))
            await asyncio.sleep(0.1)
        before = server.count("PATCH")
        await asyncio.sleep(10 * RETRY_SECONDS)
        assert server.count("PATCH") - before <= 10
        del server.refusals["PATCH", POD]
        await asyncio.sleep(RETRY_SECONDS)
        assert joined.status()["containerStatuses"][0]["restartCount"] == 19
        calls = len(server.calls)
        await asyncio.sleep(100)
        assert len(server.calls) == calls, "at rest nothing is asked"

    play(script)


def test_what_somebody_else_wrote_is_taken_back_and_our_own_write_is_no_news() -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        joined.want(DESIRED)
        joined.report(REPORT)
        await asyncio.sleep(1)
        joined.statuses.seen({UID: server.objects[POD]["metadata"]["resourceVersion"]})
        await asyncio.sleep(1)
        calls = len(server.calls)
        body = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeLost"}]}}
        server.answer("PATCH", f"{POD}/status", json.dumps(body).encode())
        joined.statuses.seen({UID: server.objects[POD]["metadata"]["resourceVersion"]})
        await asyncio.sleep(1)
        (ready,) = joined.status()["conditions"]
        assert ready["status"] == "True" and "reason" not in ready
        assert [call.method for call in server.calls[calls + 1 :]] == ["GET", "PATCH"]

    play(script)


def test_what_somebody_else_wrote_during_an_outage_of_ours_is_taken_back_too() -> None:
    """Our next status is told by what we know of theirs; the answer shows that it is old."""

    async def script(joined: Joined, server: ModelApiServer) -> None:
        joined.want(DESIRED)
        joined.report(REPORT)
        await asyncio.sleep(1)
        body = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeLost"}]}}
        server.answer("PATCH", f"{POD}/status", json.dumps(body).encode())
        joined.report(restarted(1))
        await asyncio.sleep(1)
        (ready,) = joined.status()["conditions"]
        assert ready["status"] == "True" and "reason" not in ready

    play(script)


def test_a_static_pods_status_goes_to_its_picture() -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        body = msgspec.Raw(json.dumps(BODY).encode())
        joined.want(replace(POD_DESIRED.example, body=body))
        joined.report(REPORT)
        joined.mark()
        await asyncio.sleep(1)
        made = server.objects[POD]
        assert made["metadata"]["annotations"]["kubernetes.io/config.mirror"] == UID
        uid = made["metadata"]["uid"]
        joined.mark(MirrorPod(namespace="default", name="web-n1", uid=uid, hash=UID))
        await asyncio.sleep(1)
        assert joined.status()["phase"] == "Running"
        joined.pods.on_pods_change(POD_DESIRED.key(UID), None)
        joined.pods.on_status_change(POD_REPORT.key(UID), None)
        await asyncio.sleep(1)
        assert POD not in server.objects

    play(script, has_pod=False)


def tally(message: str, count: int = 1) -> Tally:
    return Tally(event=replace(EVENT, message=message), count=count, first_seen=1.0, last_seen=2.0)


def test_the_same_event_again_is_counted_and_a_lost_one_made_anew() -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        joined.events.tell({"k": tally("a")})
        await asyncio.sleep(1)
        joined.events.tell({"k": tally("a", 3)})
        await asyncio.sleep(1)
        ((path, event),) = [(path, one) for path, one in server.objects.items() if path.startswith(EVENTS)]
        assert (event["count"], event["source"]["component"]) == (4, "kubelet")
        del server.objects[path]
        joined.events.tell({"k": tally("a", 2)})
        await asyncio.sleep(1)
        ((_, event),) = [(path, one) for path, one in server.objects.items() if path.startswith(EVENTS)]
        assert event["count"] == 2

    play(script)


def test_events_of_an_outage_are_told_once_each_with_their_count_and_too_many_are_cut() -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        server.is_down = True
        for _ in range(50):
            joined.events.tell({"often": tally("often")})
            await asyncio.sleep(1)
        for number in range(WAITING_MOST):
            joined.events.tell({f"k{number}": replace(tally("x"), last_seen=3.0 + number)})
        joined.events.tell({"often": tally("often")})
        server.is_down = False
        await asyncio.sleep(60)
        told = [one for path, one in server.objects.items() if path.startswith(EVENTS)]
        assert len(told) <= WAITING_MOST + 1
        assert server.count("POST", "/events") - len(told) <= 10, "but for the tries during the outage"

    play(script)


def test_an_event_that_is_not_taken_does_not_hold_up_the_others() -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        server.refusals["POST", EVENTS] = 403
        joined.events.tell({"a": tally("a")})
        await asyncio.sleep(1)
        del server.refusals["POST", EVENTS]
        joined.events.tell({"b": tally("b")})
        await asyncio.sleep(1)
        assert [one["message"] for path, one in server.objects.items() if path.startswith(EVENTS)] == ["b"]

    play(script)
