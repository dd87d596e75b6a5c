"""What a whole node has on its bus, read as its API reads it."""

from __future__ import annotations

import asyncio

import msgspec

from shared.bus import BucketWatch, connect, load_credentials
from shared.contracts.registry import POD_REPORT, RUNTIME_REPORT, STATUS
from shared.contracts.status import PodReport, RuntimeReport
from shared.runtime.paths import DataPaths
from tests.support.node import Node


def pod_reports(node: Node) -> list[PodReport]:
    """The newest report of each pod; while one is replaced there are two of its name."""
    return [msgspec.json.decode(raw, type=PodReport) for key, raw in _status(node).items() if POD_REPORT.id_of(key)]


def owners(node: Node) -> dict[str, int]:
    """The worker that each pod's newest report comes from, by the pod's short name (without the node's suffix)."""
    return {report.name.removesuffix(f"-{node.name}"): report.owner for report in pod_reports(node)}


def runtime_report(node: Node) -> RuntimeReport:
    """Raises KeyError while there is none."""
    return msgspec.json.decode(_status(node)[RUNTIME_REPORT.key()], type=RuntimeReport)


def _status(node: Node) -> dict[str, bytes]:
    return asyncio.run(_list_status(node))


async def _list_status(node: Node) -> dict[str, bytes]:
    credentials = load_credentials(DataPaths(node.data).bus_credentials("api"))
    bus = await connect(credentials, node=node.name, service="api", name="test")
    listed: dict[str, bytes] = {}
    watch = BucketWatch(bus, STATUS, lambda entries: listed.update(entries), lambda key, value: None)
    following = asyncio.create_task(watch.run())
    try:
        await asyncio.wait_for(watch.listed.wait(), 10)
    finally:
        following.cancel()
        await bus.drain()
    return listed
