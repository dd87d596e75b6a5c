"""A joined node: its labels and taints are those that the API server has, as status tells them on the bus."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from services.podworker.handlers import placing
from shared.bus import Bus, connect
from shared.contracts.registry import NODE_REPORT
from shared.contracts.status import NodeReport
from tests.component.podworker.worker_on_model import Desired, is_running, phase, pod_body, start_worker
from tests.support.eventually import eventually_async
from tests.support.model_runtime import ModelRuntime
from tests.support.nats_server import NatsServer

pytestmark = pytest.mark.nats


@pytest.fixture
async def status(nats_server: NatsServer) -> AsyncIterator[Bus]:
    bus = await connect(nats_server.credentials("status"), node="n1", service="status", name="status")
    yield bus
    await bus.drain()


async def tell(status: Bus, *, uid: str = "node-uid", taint: str = "", **labels: str) -> None:
    spec = {"taints": [{"key": taint, "effect": "NoExecute"}]} if taint else {}
    node = {"metadata": {"name": "n1", "uid": uid, "labels": labels}, "spec": spec}
    report = NodeReport(v=1, node="n1", ts=1.0, body=msgspec.Raw(msgspec.json.encode(node)))
    await status.put(NODE_REPORT, report)


async def test_a_pod_that_asks_for_a_label_of_the_api_server_waits_until_that_is_known_here(
    nats_server: NatsServer,
    engine: ModelRuntime,
    data: Path,
    desired: Desired,
    status: Bus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A scheduler may have seen a label before this node has: that is no reason to fail the pod for ever."""
    worker = await start_worker(nats_server, data, monkeypatch, joined=True)
    await desired.put("a", "u1", pod_body("a", "u1", nodeSelector={"disk": "ssd"}), source="api")
    await desired.put("b", "u2", source="api")
    await eventually_async(lambda: is_running(desired, "u2"), within=15)
    assert phase(desired, "u1") == ""
    await tell(status, uid="", disk="ssd")  # not seen at the API server
    await tell(status, disk="ssd")
    await eventually_async(lambda: is_running(desired, "u1"), within=15)
    await worker.stop()


async def test_a_pod_that_does_not_belong_here_is_refused(
    nats_server: NatsServer,
    engine: ModelRuntime,
    data: Path,
    desired: Desired,
    status: Bus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """node 35 of section 15, and a taint NoExecute."""
    monkeypatch.setattr(placing, "DOUBT_SECONDS", 0.0)
    await tell(status, taint="example.com/gone", disk="hdd")
    worker = await start_worker(nats_server, data, monkeypatch, joined=True)
    tolerations = [{"operator": "Exists"}]
    await desired.put(
        "a", "u1", pod_body("a", "u1", nodeSelector={"disk": "ssd"}, tolerations=tolerations), source="api"
    )
    await desired.put("b", "u2", source="api")
    await desired.put(
        "c", "u3", pod_body("c", "u3", nodeSelector={"disk": "hdd"}, tolerations=tolerations), source="api"
    )
    await desired.put("d", "u4")  # a static pod is exempt
    await eventually_async(lambda: is_running(desired, "u3") and is_running(desired, "u4"), within=15)
    await eventually_async(lambda: phase(desired, "u1") == phase(desired, "u2") == "Failed", within=15)
    assert [desired.reports[uid].status.reason for uid in ("u1", "u2")] == ["NodeAffinity", "TaintToleration"]
    assert (
        desired.reports["u2"].status.message
        == "Pod was rejected: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    )
    await worker.stop()
