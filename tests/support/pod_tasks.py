"""A pod's task over the model engine and a real pods.db, without a bus."""

from __future__ import annotations

from random import Random
from typing import cast

import msgspec

from services.podworker.adapters.network_sockets import SocketNetwork
from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.core.admission import NodeLimits
from services.podworker.core.plan import SyncConfig
from services.podworker.handlers.desired_pods import DesiredPods
from services.podworker.handlers.executor import Executor
from services.podworker.handlers.hooks import HookRunner
from services.podworker.handlers.permits import Permits
from services.podworker.handlers.pod_context import PodContext
from services.podworker.handlers.pod_record import Recorder
from services.podworker.handlers.pod_task import PodTask
from services.podworker.handlers.prober import Prober
from services.podworker.handlers.reports import Reports
from services.podworker.ports import StoredPod
from shared.contracts.pods import PodDesired, SourceMarker, SourceName
from shared.contracts.registry import POD_DESIRED, SOURCE_MARKER
from shared.kube.pod import Pod
from shared.runtime.clock import SystemClock
from tests.support.builders import UID, a_container, a_node, a_pod
from tests.support.model_runtime import ModelRuntime
from tests.support.no_volumes import no_volumes


class NoReports:
    def publish(self, *arguments: object, **options: object) -> None:
        return

    publish_later = withdraw = leave = publish


def a_task(
    engine: ModelRuntime,
    store: SqlitePodStore,
    pod: Pod | None = None,
    *,
    stored: StoredPod | None = None,
    source: SourceName = "file",
    refused: str = "",
) -> PodTask:
    """Of a pod that its source wants; `stored` = its row, at another worker."""
    desired = DesiredPods([source], lambda uid: None)
    body = msgspec.json.encode(a_pod(a_container()) if pod is None else pod)
    wanted = PodDesired(
        v=1,
        node="n1",
        ts=1.0,
        uid=UID,
        namespace="default",
        name="p-node1",
        source=source,
        gen=1,
        hash="h",
        seen=1.0,
        body=msgspec.Raw(body),
        refused=refused,
    )
    desired.on_list({POD_DESIRED.key(UID): msgspec.json.encode(wanted)})
    clock = SystemClock()
    context = PodContext(
        desired=desired,
        executor=Executor(engine, engine, Permits(1), Permits(1), a_node(), SyncConfig(), clock, volumes=no_volumes()),
        hooks=HookRunner(engine, SocketNetwork()),
        prober=Prober(engine, SocketNetwork(), clock, "192.0.2.1", Random(1)),
        recorder=Recorder(store, clock, "podworker-0"),
        reports=cast(Reports, NoReports()),
        limits=NodeLimits(pods=110, cpu_milli=2000, memory_bytes=1 << 30),
        node_ip="192.0.2.1",
        sync_seconds=60.0,
        rng=Random(1),
        may_start=lambda task: True,
        ended=lambda task: None,
        handled=lambda uid, gen, begin: None,
    )
    return PodTask.of(context, UID, "default", "p-node1", stored)


def withdraw(task: PodTask) -> None:
    """Its source has listed all it wants, and the pod isn't among it: it's told to end."""
    marker = SourceMarker(v=1, node="n1", ts=1.0, source="file", ready=True, epoch="e", uids=[])
    task.context.desired.on_list({SOURCE_MARKER.key("file"): msgspec.json.encode(marker)})
    task.wake()


def delete_in_api(task: PodTask, grace: int) -> None:
    """The API server has set the pod's deletionTimestamp, or a shorter grace beside it."""
    desired = task.context.desired
    before = desired.get(task.uid)
    assert before is not None
    after = msgspec.structs.replace(before, gen=before.gen + 1, hash=f"h{grace}", deletion_grace=grace)
    desired.on_change(POD_DESIRED.key(task.uid), msgspec.json.encode(after))
    task.wake()
