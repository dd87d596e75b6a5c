"""A full node and a pod that must run: those of lower priority make room, with their grace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.component.podworker.worker_on_model import Desired, is_running, phase, pod_body, running, start_worker
from tests.support.eventually import eventually_async
from tests.support.model_runtime import ModelRuntime
from tests.support.nats_server import NatsServer

pytestmark = pytest.mark.nats


async def test_a_more_critical_pod_takes_the_place_of_another_when_that_has_ended(
    nats_server: NatsServer, engine: ModelRuntime, data: Path, desired: Desired, monkeypatch: pytest.MonkeyPatch
) -> None:
    """node 9. The one that goes fails as the kubelet says, and nothing of it is started again."""
    worker = await start_worker(nats_server, data, monkeypatch, max_pods=2)
    await desired.put("low", "u1", pod_body("low", "u1", priority=1))
    await eventually_async(lambda: is_running(desired, "u1"), within=10)
    await desired.put("middle", "u2", pod_body("middle", "u2", priority=5))
    await eventually_async(lambda: is_running(desired, "u2"), within=10)
    await desired.put("high", "u3", pod_body("high", "u3", priority=9))
    overlaps: list[str] = []

    def has_its_place() -> bool:
        if all(engine.live_sandboxes(uid) for uid in ("u1", "u2", "u3")):
            overlaps.append("three at a time")
        return is_running(desired, "u3")

    await eventually_async(has_its_place, within=30)
    assert not overlaps
    assert (is_running(desired, "u2"), running(engine, "u1")) == (True, [])
    status = desired.reports["u1"].status
    assert (status.phase, status.reason, status.message) == (
        "Failed",
        "Preempting",
        "Preempted in order to admit critical pod",
    )
    await desired.put("least", "u4", pod_body("least", "u4", priority=1))
    await eventually_async(lambda: phase(desired, "u4") == "Failed", within=10)
    assert desired.reports["u4"].status.reason == "UnexpectedAdmissionError"
    await worker.stop()
