"""Registration, status and lease against an API server in memory, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from services.status.core.conditions import judge
from services.status.core.model import NodeMemory
from services.status.core.node import Node, build_node
from services.status.core.registration import Joining
from services.status.core.remote_node import RemoteNode
from services.status.handlers.lease import NodeLease
from services.status.handlers.node_registration import TRIES, NodeRegistration
from shared.kube.times import parse_rfc3339
from tests.support.model_api_server import ModelApiServer
from tests.support.model_worker import LoopClock
from tests.support.node_observations import FINE, SETTINGS
from tests.support.virtual_loop import VirtualLoop, run_virtually

NODES = "/api/v1/nodes"
PEER = f"{NODES}/peer"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/peer"


class Joined:
    """A node that computes its status each ten seconds."""

    def __init__(self, loop: VirtualLoop, server: ModelApiServer, joining: Joining) -> None:
        self.clock = LoopClock(loop)
        self.read: list[RemoteNode] = []
        rng = Random(1)
        self.registration = NodeRegistration(server, self.clock, joining, self.read.append, rng)
        self.lease = NodeLease(server, self.clock, "peer", 40, lambda: self.registration.uid, rng)
        self.memory = NodeMemory(created_at=self.clock.now())
        self.problems: list[str] = []
        self.seen = FINE

    def node(self) -> Node:
        verdict = judge("peer", self.memory, set(), self.problems, self.clock.now())
        self.memory = verdict.memory
        return build_node(SETTINGS, self.seen, None, verdict.conditions, self.clock.now())

    async def compute(self) -> None:
        while True:
            self.registration.tell(self.node())
            await asyncio.sleep(10)


def play(
    script: Callable[[Joined, ModelApiServer], Awaitable[None]],
    *,
    joining: Joining | None = None,
    prepare: Callable[[ModelApiServer], None] = lambda _: None,
) -> ModelApiServer:
    async def main() -> ModelApiServer:
        loop = asyncio.get_running_loop()
        server = ModelApiServer(loop.time)
        prepare(server)
        assert isinstance(loop, VirtualLoop)
        joined = Joined(loop, server, joining or Joining())
        tasks = [asyncio.create_task(run()) for run in (joined.compute, joined.registration.run, joined.lease.run)]
        await script(joined, server)
        assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return server

    return run_virtually(main)


async def a_minute(_: Joined, __: ModelApiServer) -> None:
    await asyncio.sleep(61)


def existing(**metadata: Any) -> Callable[[ModelApiServer], None]:
    def prepare(server: ModelApiServer) -> None:
        server.objects[PEER] = {
            "metadata": {"name": "peer", "uid": "old", "resourceVersion": "1", **metadata},
            "spec": {},
            "status": {},
        }

    return prepare


def test_a_node_at_rest_asks_for_a_read_and_a_renewal_in_ten_seconds() -> None:
    """Node case 16: nothing is patched again."""
    server = play(a_minute)
    assert server.count("POST", NODES) == 1 and server.count("PATCH") == 1  # the first report after the start
    assert server.count("GET", PEER) in (6, 7) and server.count("PUT", LEASE) in (5, 6)
    assert len(server.calls) / 61 < 0.3


def test_an_unchanged_status_is_reported_each_five_minutes() -> None:
    async def an_hour(_: Joined, __: ModelApiServer) -> None:
        await asyncio.sleep(3601)

    assert play(an_hour).count("PATCH") == 13


def test_a_change_is_told_at_once_and_moves_the_next_report() -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        await asyncio.sleep(25)
        joined.problems = ["down"]
        await asyncio.sleep(10)
        assert server.count("PATCH") == 2
        ready = server.objects[PEER]["status"]["conditions"][-1]
        assert (ready["type"], ready["status"], ready["message"]) == ("Ready", "False", "down")
        await asyncio.sleep(480)
        patches = [call.at for call in server.calls if call.method == "PATCH"]
        assert 150 <= patches[2] - patches[1] <= 460

    play(script)


def test_what_an_older_server_drops_is_not_sent_each_time() -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        joined.seen = replace(FINE, swap_total=1 << 20)
        server.drops = ("swap",)
        await asyncio.sleep(120)
        assert server.count("PATCH") == 1

    play(script)


def test_an_existing_node_is_corrected_once_and_keeps_the_rest() -> None:
    """Node cases 11 and 12."""
    labels = {"kubernetes.io/arch": "wrong", "theirs": "x"}
    joining = Joining(taints=({"key": "a", "effect": "NoSchedule"},), labels={"disk": "ssd"})
    server = play(a_minute, joining=joining, prepare=existing(labels=labels))
    node = server.objects[PEER]
    assert node["metadata"]["labels"]["kubernetes.io/arch"] == "amd64" and node["metadata"]["labels"]["theirs"] == "x"
    assert "disk" not in node["metadata"]["labels"] and node["spec"] == {}
    assert server.count("PATCH") == 2  # the labels, the status


def test_a_node_that_is_not_to_register_waits_for_the_one_that_others_make() -> None:
    async def script(_: Joined, server: ModelApiServer) -> None:
        await asyncio.sleep(30)
        assert server.count("POST") == 0 and not server.objects
        existing()(server)
        await asyncio.sleep(20)
        assert server.objects[PEER]["status"]["conditions"] and LEASE in server.objects

    play(script, joining=Joining(register=False))


def test_registration_is_tried_until_it_is_allowed() -> None:
    def refuse(server: ModelApiServer) -> None:
        server.refusals[("POST", NODES)] = 403

    async def script(_: Joined, server: ModelApiServer) -> None:
        await asyncio.sleep(60)
        times = [call.at for call in server.calls if call.method == "POST" and call.path == NODES]
        assert 12 <= len(times) <= 18, "doubling from 100 ms to 7 s"
        assert times[1] - times[0] < 0.2 and times[-1] - times[-2] > 5
        assert LEASE not in server.objects, "no lease without an owner"
        server.refusals.clear()
        await asyncio.sleep(18)
        assert PEER in server.objects and LEASE in server.objects

    play(script, prepare=refuse)


def test_the_lease_belongs_to_the_node_and_is_renewed() -> None:
    """Node case 22."""
    server = play(a_minute)
    lease = server.objects[LEASE]
    assert lease["metadata"]["ownerReferences"][0]["uid"] == server.objects[PEER]["metadata"]["uid"]
    assert lease["spec"]["holderIdentity"] == "peer" and lease["spec"]["leaseDurationSeconds"] == 40
    assert server.count("GET", LEASE) <= 2, "renewed without being read"


def test_an_outage_is_followed_by_no_storm_and_the_lease_is_back_at_once() -> None:
    async def script(_: Joined, server: ModelApiServer) -> None:
        await asyncio.sleep(60)
        server.is_down = True
        before = len(server.calls)
        await asyncio.sleep(180)
        outage = len(server.calls) - before
        assert outage < 180, "less than one in a second"
        server.is_down = False
        renewed, back = server.objects[LEASE]["spec"]["renewTime"], len(server.calls)
        await asyncio.sleep(9)
        assert server.objects[LEASE]["spec"]["renewTime"] > renewed
        await asyncio.sleep(31)
        assert len(server.calls) - back < 20

    play(script)


def test_a_lease_that_somebody_changed_is_read_and_renewed() -> None:
    async def script(_: Joined, server: ModelApiServer) -> None:
        await asyncio.sleep(15)
        server.objects[LEASE]["metadata"] |= {"resourceVersion": "999", "annotations": {"theirs": "x"}}
        renewed = server.objects[LEASE]["spec"]["renewTime"]
        await asyncio.sleep(11)
        lease = server.objects[LEASE]
        assert lease["spec"]["renewTime"] > renewed and lease["metadata"]["annotations"] == {"theirs": "x"}

    play(script)


def test_a_lease_that_somebody_deleted_is_made_again() -> None:
    async def script(_: Joined, server: ModelApiServer) -> None:
        await asyncio.sleep(15)
        del server.objects[LEASE]
        await asyncio.sleep(12)
        assert LEASE in server.objects

    play(script)


def test_a_node_that_was_deleted_is_not_made_anew_and_neither_is_its_lease() -> None:
    """kubelet 1.36: until it's restarted."""

    async def script(joined: Joined, server: ModelApiServer) -> None:
        await asyncio.sleep(15)
        server.objects.clear()
        before = len(server.calls)
        await asyncio.sleep(60)
        assert not server.objects and joined.registration.uid == ""
        assert len(server.calls) - before < 30
        existing(uid="another")(server)
        await asyncio.sleep(20)
        assert server.objects[LEASE]["metadata"]["ownerReferences"][0]["uid"] == "another"

    play(script)


def test_a_status_that_is_refused_is_tried_five_times_and_again_at_the_next() -> None:
    def refuse(server: ModelApiServer) -> None:
        server.refusals[("PATCH", PEER)] = 500

    async def script(_: Joined, server: ModelApiServer) -> None:
        await asyncio.sleep(5)
        assert server.count("PATCH") == TRIES
        server.refusals.clear()
        await asyncio.sleep(10)
        assert server.count("PATCH") == TRIES + 1

    play(script, prepare=refuse)


TROUBLES: dict[str, Callable[[ModelApiServer], object]] = {
    "up": lambda server: None,
    "down": lambda server: setattr(server, "is_down", True),
    "errors": lambda server: server.refusals.update({(method, "/"): 500 for method in ("GET", "PUT", "POST", "PATCH")}),
    "read-only": lambda server: server.refusals.update({(method, "/"): 403 for method in ("PUT", "POST", "PATCH")}),
    "lease taken away": lambda server: server.objects.pop(LEASE, None),
    "lease changed": lambda server: server.objects.get(LEASE, {"metadata": {}})["metadata"].update(resourceVersion="x"),
    "status lost": lambda server: server.objects.get(PEER, {}).update(status={}),
}


@settings(max_examples=30)
@given(
    troubles=st.lists(st.tuples(st.sampled_from(sorted(TROUBLES)), st.integers(1, 120)), max_size=6),
    problems=st.lists(st.sampled_from(["", "down"]), min_size=7, max_size=7),
)
def test_whatever_the_api_server_went_through_half_a_minute_later_it_knows_the_node(
    troubles: list[tuple[str, int]], problems: list[str]
) -> None:
    async def script(joined: Joined, server: ModelApiServer) -> None:
        for (trouble, seconds), problem in zip([*troubles, ("up", 30)], problems, strict=False):
            server.is_down = False
            server.refusals.clear()
            TROUBLES[trouble](server)
            joined.problems = [problem] if problem else []
            before = len(server.calls)
            await asyncio.sleep(seconds)
            assert len(server.calls) - before <= 30 + 2 * seconds, f"a storm while {trouble}"
        ready = server.objects[PEER]["status"]["conditions"][-1]
        assert ready["status"] == ("False" if joined.problems else "True")
        renewed = parse_rfc3339(server.objects[LEASE]["spec"]["renewTime"])
        assert joined.clock.now() - renewed < 11

    play(script)
