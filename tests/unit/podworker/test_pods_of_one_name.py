"""An edited static pod is another pod of the same name: it waits for what its worker hasn't looked at yet, too."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import msgspec

from cli.db import db_upgrade
from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.core.model import RuntimePod
from services.podworker.handlers.pods import Pods
from services.podworker.handlers.reports import Reports
from shared.contracts.pods import PodDesired
from shared.contracts.registry import POD_DESIRED
from shared.kube.ids import SLOTS
from shared.kube.pod import ObjectMeta, Pod
from tests.support.builders import UID, a_container, a_pod
from tests.support.eventually import eventually_async
from tests.support.model_runtime import ModelRuntime
from tests.support.pod_tasks import NoReports, a_task

NEW = "f" * 32


class SlowToTell(ModelRuntime):
    """Says late what there is of the old pod, and at once of any other."""

    def __init__(self) -> None:
        super().__init__(time.time)
        self.go_on = asyncio.Event()

    async def pod(self, uid: str) -> RuntimePod | None:
        if uid == UID:
            await self.go_on.wait()
        return await super().pod(uid)


def replace_uid(pod: Pod, uid: str) -> ObjectMeta:
    return msgspec.structs.replace(pod.metadata, uid=uid)


def wanted(uid: str, seen: float) -> tuple[str, bytes]:
    made = a_pod(a_container())
    body = msgspec.Raw(msgspec.json.encode(msgspec.structs.replace(made, metadata=replace_uid(made, uid))))
    pod = PodDesired(
        v=1,
        node="n1",
        ts=1.0,
        uid=uid,
        namespace="default",
        name="p-node1",
        source="file",
        gen=int(seen),
        hash="h",
        seen=seen,
        body=body,
    )
    return POD_DESIRED.key(uid), msgspec.json.encode(pod)


async def test_the_new_one_waits_for_the_old_ones_first_look_when_its_row_was_lost(tmp_path: Path) -> None:
    """Both are on the bus for a moment, for a source adds before it removes."""
    db_upgrade(tmp_path)
    engine, store = SlowToTell(), SqlitePodStore(tmp_path)
    engine.go_on.set()
    first = a_task(engine, store)
    running = asyncio.create_task(first.run())
    await eventually_async(lambda: engine.containers, within=10)
    running.cancel()
    await asyncio.wait([running], timeout=10)
    store.delete(UID)
    engine.go_on.clear()

    context = first.context
    pods = Pods(context.desired, context.recorder, cast(Reports, NoReports()))
    pods.use(replace(context, may_start=pods.may_start, ended=pods.ended))
    context.desired.on_list(dict([wanted(UID, 1.0), wanted(NEW, 2.0)]))
    pods.listed(await ModelRuntime.list_pods(engine))
    pods.gained(frozenset(range(SLOTS)))
    for _ in range(100):
        await asyncio.sleep(0)
    assert {container.config.uid for container in engine.containers.values()} == {UID}
    engine.go_on.set()
    for slot in range(SLOTS):
        await pods.lost(slot)
