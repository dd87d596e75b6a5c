"""The node key on the bus: it appears, tells the truth, and comes back from everything."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path

import pytest

from tests.component.status.callers import Callers
from tests.support.eventually import eventually_async
from tests.support.nats_server import NatsServer
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.nats

FIRST = ["Starting", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"]


async def test_the_node_is_published_before_status_is_ready(status: ServiceProcess, callers: Callers) -> None:
    await asyncio.to_thread(status.start)
    await eventually_async(lambda: callers.node, within=5)
    assert callers.node is not None and callers.node["metadata"]["name"] == "n1"
    assert callers.condition("Ready")["reason"] == "KubeletNotReady"
    assert await callers.node_events() == FIRST


async def test_the_node_is_ready_as_soon_as_the_runtime_is_reported(status: ServiceProcess, callers: Callers) -> None:
    await asyncio.to_thread(status.start)
    await callers.report_runtime()
    await eventually_async(callers.is_ready, within=5)
    assert callers.node is not None
    assert callers.node["status"]["nodeInfo"]["containerRuntimeVersion"] == "docker://20.10.24"
    assert await callers.node_events() == [*FIRST, "NodeReady"]


async def test_an_old_report_makes_no_node_ready(status: ServiceProcess, callers: Callers) -> None:
    """The worker that wrote it may have gone long ago."""
    await callers.report_runtime(ago=120)
    await asyncio.to_thread(status.start)
    await eventually_async(lambda: callers.node, within=5)
    assert "container runtime is down" in callers.condition("Ready")["message"]


async def test_a_runtime_that_was_never_healthy_is_told_with_its_reason(
    status: ServiceProcess, callers: Callers
) -> None:
    await asyncio.to_thread(status.start)
    await callers.report_runtime(healthy=False, message="docker: connection refused")
    await eventually_async(lambda: "connection refused" in callers.condition("Ready")["message"], within=5)
    assert not callers.is_ready()


async def test_a_wiped_store_gets_the_node_back(
    status: ServiceProcess, callers: Callers, nats_server: NatsServer
) -> None:
    """Nothing in NATS is the only copy, and nothing flips meanwhile."""
    await asyncio.to_thread(status.start)
    await callers.report_runtime()
    await eventually_async(callers.is_ready, within=5)
    before = callers.condition("Ready")["lastTransitionTime"]
    nats_server.stop()
    nats_server.wipe()
    callers.node_versions.clear()
    nats_server.start()
    await eventually_async(lambda: callers.node_versions and callers.is_ready(), within=15)
    assert callers.condition("Ready")["lastTransitionTime"] == before
    assert await callers.node_events() == [*FIRST, "NodeReady", "BusReconnected"]


async def test_kill_9_of_status_flips_nothing(
    status: ServiceProcess, callers: Callers, nats_server: NatsServer
) -> None:
    """Even with the bus' store wiped meanwhile: what is remembered lies in status.db."""
    await asyncio.to_thread(status.start)
    await callers.report_runtime()
    await eventually_async(callers.is_ready, within=5)
    kept = {kind: callers.condition(kind)["lastTransitionTime"] for kind in ("MemoryPressure", "Ready")}
    created = callers.node["metadata"]["creationTimestamp"] if callers.node else ""
    status.kill()
    nats_server.stop()
    nats_server.wipe()
    nats_server.start()
    callers.node_versions.clear()
    second = int(time.time())
    await eventually_async(lambda: int(time.time()) > second, within=5)  # another transition time would show
    await asyncio.to_thread(status.start)
    await eventually_async(lambda: callers.node_versions, within=15)
    assert callers.is_ready()
    assert callers.node is not None and callers.node["metadata"]["creationTimestamp"] == created
    assert {kind: callers.condition(kind)["lastTransitionTime"] for kind in kept} == kept
    assert (await callers.node_events()).count("NodeReady") == 1
    assert "NodeNotReady" not in await callers.node_events()


async def test_a_node_whose_machine_was_rebooted_says_so(status: ServiceProcess, callers: Callers) -> None:
    await asyncio.to_thread(status.start)
    await eventually_async(lambda: callers.node, within=5)
    status.stop()
    _pretend_another_boot(status)
    await asyncio.to_thread(status.start)
    assert "Rebooted" in await callers.node_events()


async def test_an_unchanged_node_is_not_written_again(status: ServiceProcess, callers: Callers) -> None:
    """Reports of the runtime come every ten seconds; they change nothing."""
    await asyncio.to_thread(status.start)
    await callers.report_runtime()
    await eventually_async(callers.is_ready, within=5)
    written = len(callers.node_versions)
    for _ in range(5):
        await callers.report_runtime()
    await callers.report_runtime(healthy=False, message="docker: restarting")
    await callers.node_events()  # a round trip: all reports have been seen by the server
    assert len(callers.node_versions) == written


async def test_sigterm_ends_status_with_success_and_leaves_the_node(status: ServiceProcess, callers: Callers) -> None:
    await asyncio.to_thread(status.start)
    await callers.report_runtime()
    await eventually_async(callers.is_ready, within=5)
    assert status.stop() == 0
    assert callers.is_ready()


def _pretend_another_boot(status: ServiceProcess) -> None:
    link = sqlite3.connect(status.data / "status.db")
    with link:
        changed = link.execute("UPDATE node SET memory = json_set(memory, '$.boot_id', 'an-earlier-one')").rowcount
    link.close()
    assert changed == 1


async def test_more_reserved_than_there_is_ends_the_start_with_the_resource(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    """Node case 15."""
    config = tmp_path / "kubelet.yaml"
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nkubeReserved: {memory: 1Pi}\n"
    )
    data = tmp_path / "data"
    data.mkdir()
    status = ServiceProcess("status", data, nats_server, environment={"PODBUS_CONFIG": str(config)})
    status.prepare()
    status.spawn()
    assert await asyncio.to_thread(status.wait) != 0
    assert "kubeReserved: memory: kubeReserved 1Pi" in status.log()
