"""status with a kubeconfig: the Node and its Lease at an API server, over kills of either side."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.component.status.callers import Callers
from tests.support.api_server_http import HttpApiServer
from tests.support.eventually import eventually_async
from tests.support.nats_server import NatsServer
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.nats

NODE = "/api/v1/nodes/n1"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
nodeLeaseDurationSeconds: 2
nodeStatusUpdateFrequency: 500ms
nodeStatusReportFrequency: 5m
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpApiServer]:
    made = HttpApiServer(tmp_path)
    made.start()
    yield made
    made.stop()


@pytest.fixture
async def joined(
    nats_server: NatsServer, tmp_path: Path, server: HttpApiServer, callers: Callers
) -> AsyncIterator[ServiceProcess]:
    """Running, with a worker that reports the engine."""
    data = tmp_path / "data"
    data.mkdir()
    config = tmp_path / "kubelet.yaml"
    config.write_text(CONFIG)
    environment = {"PODBUS_KUBECONFIG": str(server.kubeconfig), "PODBUS_CONFIG": str(config)}
    process = ServiceProcess("status", data, nats_server, environment=environment)
    await callers.report_runtime()
    await asyncio.to_thread(process.start)
    await eventually_async(lambda: LEASE in server.model.objects and is_ready(server), within=30)
    yield process
    process.close()


def conditions(server: HttpApiServer) -> dict[str, Any]:
    return {one["type"]: one for one in server.model.objects[NODE]["status"]["conditions"]}


def is_ready(server: HttpApiServer) -> bool:
    return bool(conditions(server)["Ready"]["status"] == "True")


def renewed_at(server: HttpApiServer) -> str:
    text: str = server.model.objects[LEASE]["spec"]["renewTime"]
    return text


async def test_the_node_and_its_lease_are_at_the_api_server(joined: ServiceProcess, server: HttpApiServer) -> None:
    """Node case 22."""
    node, lease = server.model.objects[NODE], server.model.objects[LEASE]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    before = renewed_at(server)
    await eventually_async(lambda: renewed_at(server) > before, within=10)


async def test_the_bus_tells_what_only_the_api_server_knows(
    joined: ServiceProcess, server: HttpApiServer, callers: Callers
) -> None:
    taint = {"key": "dedicated", "effect": "NoExecute"}
    server.model.objects[NODE]["spec"] = {"taints": [taint], "unschedulable": True}
    server.model.objects[NODE]["metadata"]["labels"]["disk"] = "ssd"

    def is_told() -> bool:
        node = callers.node
        return node is not None and node["spec"].get("taints") == [taint] and "disk" in node["metadata"]["labels"]

    await eventually_async(is_told, within=10)
    assert callers.node is not None and callers.node["metadata"]["uid"]
    assert "NodeNotSchedulable" in await callers.node_events()


async def test_kill_9_of_status_keeps_transition_times_even_without_its_database(
    joined: ServiceProcess, server: HttpApiServer
) -> None:
    before = {kind: one["lastTransitionTime"] for kind, one in conditions(server).items()}
    uid = server.model.objects[NODE]["metadata"]["uid"]
    joined.kill()
    for file in joined.data.glob("status.db*"):
        file.unlink()
    second = int(time.time())
    await eventually_async(lambda: int(time.time()) > second, within=5)  # another transition time would show
    calls = len(server.model.calls)
    renewed = renewed_at(server)
    await asyncio.to_thread(joined.start)
    await eventually_async(
        lambda: (
            renewed_at(server) > renewed
            and any(call.method == "PATCH" for call in server.model.calls[calls:])
            and is_ready(server)
        ),
        within=30,
    )
    assert {kind: one["lastTransitionTime"] for kind, one in conditions(server).items()} == before
    assert server.model.objects[NODE]["metadata"]["uid"] == uid


async def test_after_an_outage_the_lease_is_back_and_nothing_flipped(
    joined: ServiceProcess, server: HttpApiServer
) -> None:
    before = conditions(server)["Ready"]["lastTransitionTime"]
    renewed, patches = renewed_at(server), server.model.count("PATCH")
    server.stop()
    second = int(time.time())
    await eventually_async(lambda: int(time.time()) > second + 2, within=10)  # several renewals fail
    assert joined.is_running()
    server.start()
    await eventually_async(lambda: renewed_at(server) > renewed, within=30)
    assert conditions(server)["Ready"]["lastTransitionTime"] == before
    assert server.model.count("PATCH") == patches, "nothing changed: there is nothing to tell"


async def test_sigterm_leaves_the_node_and_its_lease(joined: ServiceProcess, server: HttpApiServer) -> None:
    """Node case 24."""
    assert joined.stop() == 0
    assert is_ready(server) and LEASE in server.model.objects
    assert server.model.count("DELETE") == 0


async def test_a_silent_worker_makes_the_node_not_ready_at_the_api_server(
    joined: ServiceProcess, server: HttpApiServer, callers: Callers
) -> None:
    """Node case 20: and back, with one event."""
    assert joined.stop() == 0
    await callers.report_runtime(healthy=False, ago=120, message="docker: connection refused")
    _forget(joined)
    await asyncio.to_thread(joined.start)
    await eventually_async(lambda: not is_ready(server), within=30)
    ready = conditions(server)["Ready"]
    assert ready["reason"] == "KubeletNotReady" and "container runtime" in ready["message"]
    await callers.report_runtime()
    await eventually_async(lambda: is_ready(server), within=30)
    assert (await callers.node_events()).count("NodeReady") == 1


def _forget(status: ServiceProcess) -> None:
    """Else status gives the runtime half a minute to be heard after a restart."""
    for file in status.data.glob("status.db*"):
        file.unlink()


async def test_a_range_that_the_pods_are_not_in_is_told_once(
    joined: ServiceProcess, server: HttpApiServer, callers: Callers
) -> None:
    server.model.objects[NODE]["spec"] = {"podCIDR": "10.1.0.0/24"}
    await callers.report_runtime(subnets=["172.17.0.0/16"])

    async def times_told() -> int:
        return (await callers.node_events()).count("CIDRNotAvailable")

    await eventually_async(times_told, within=30)
    calls = server.model.count("GET", NODE)
    await eventually_async(lambda: server.model.count("GET", NODE) > calls + 2, within=15)
    assert await times_told() == 1
