"""THE list of every subject and key: owner, consumers, payload type, one example.

AsyncAPI, the docs table and the NATS permissions are generated from it; a test holds a fingerprint of every message.
"""

from __future__ import annotations

import msgspec

from shared.contracts.configs import (
    ConfigMapData,
    ConfigMapQuery,
    ConfigsChanged,
    SecretData,
    SecretQuery,
    ServicesQuery,
    ServiceVariables,
    TokenData,
    TokenQuery,
)
from shared.contracts.events import (
    EventBatch,
    EventList,
    EventQuery,
    EventsAccepted,
    RecordedEvent,
)
from shared.contracts.examples import CID, EVENT, MARKER, POD_STATUS, TS, UID
from shared.contracts.metrics import Family, MetricsReport, Sample
from shared.contracts.pods import PodDesired, PodsSeen, SourceMarker
from shared.contracts.sources import ReloadCommand, Reloaded, SourceList, SourcesQuery
from shared.contracts.stats import PageQuery, PageReply, SummaryQuery, SummaryReply
from shared.contracts.status import NodeImage, NodeReport, PodReport, RunningContainer, RuntimeReport
from shared.contracts.streams import LogOptions, StreamCommand, StreamTicket
from shared.contracts.subject import SERVICES, AnyHint, AnyKey, AnyRequest, Bucket, Hint, Key, Request, ServiceName
from shared.contracts.worker import (
    Heartbeat,
    RunningContainerImage,
    RunningPod,
    RunningPods,
    RunningPodsQuery,
    SlotReleased,
)

PODS = Bucket(name="podbus_pods", summary="What should run: desired pods and the state of their sources.")
STATUS = Bucket(name="podbus_status", summary="What is so: pods, the runtime, the node.")
BUCKETS = (PODS, STATUS)

POD_DESIRED = Key(
    bucket=PODS,
    prefix="pod",
    id="uid",
    body=PodDesired,
    owner="source",
    consumers=("podworker", "status", "api"),
    summary="One pod that should run.",
    example=PodDesired(
        v=1,
        node="n1",
        ts=TS,
        uid=UID,
        namespace="default",
        name="web-n1",
        source="file",
        gen=1,
        hash="9b1c",
        seen=TS,
        body=msgspec.Raw(
            b'{"metadata":{"name":"web-n1"},"spec":{"containers":[{"name":"web","image":"busybox:1.36"}]}}'
        ),
    ),
)
SOURCE_MARKER = Key(
    bucket=PODS,
    prefix="source",
    id="name",
    body=SourceMarker,
    owner="source",
    consumers=("podworker", "status", "api"),
    summary="A source's complete listing: which pods it has, and what is wrong with its manifests.",
    example=MARKER,
)
POD_REPORT = Key(
    bucket=STATUS,
    prefix="pod",
    id="uid",
    body=PodReport,
    owner="podworker",
    consumers=("status", "stats", "api"),
    summary="A pod's status, and the containers that run for it.",
    example=PodReport(
        v=1,
        node="n1",
        ts=TS,
        uid=UID,
        namespace="default",
        name="web-n1",
        source="file",
        gen=1,
        hash="9b1c",
        rev=7,
        owner=0,
        state="sync",
        cgroup_parent=f"/kubepods/besteffort/pod{UID}",
        status=POD_STATUS,
        containers=[RunningContainer(name="web", id=CID, pid=4242, started_at=TS)],
    ),
)
RUNTIME_REPORT = Key(
    bucket=STATUS,
    prefix="runtime",
    id="",
    body=RuntimeReport,
    owner="podworker",
    consumers=("status", "stats", "api"),
    summary="The engine's version, health and images, by the holder of slot 0.",
    example=RuntimeReport(
        v=1,
        node="n1",
        ts=TS,
        healthy=True,
        relisted_at=TS,
        engine_version="20.10.24",
        workers=[0],
        images=[NodeImage(names=["busybox:1.36"], size=2000000)],
    ),
)
NODE_REPORT = Key(
    bucket=STATUS,
    prefix="node",
    id="",
    body=NodeReport,
    owner="status",
    consumers=("api", "podworker"),
    summary="The Node object: capacity, allocatable, addresses, conditions.",
    example=NodeReport(
        v=1, node="n1", ts=TS, body=msgspec.Raw(b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}}')
    ),
)
KEYS: tuple[AnyKey, ...] = (POD_DESIRED, SOURCE_MARKER, POD_REPORT, RUNTIME_REPORT, NODE_REPORT)

SOURCES = Request(
    service="source",
    kind="q",
    what="sources",
    request=SourcesQuery,
    reply=SourceList,
    consumers=("api",),
    summary="The state of every source, fresh from source.",
    example=SourcesQuery(),
    example_reply=SourceList(sources=[MARKER]),
)
RELOAD = Request(
    service="source",
    kind="c",
    what="reload",
    request=ReloadCommand,
    reply=Reloaded,
    consumers=("api",),
    summary="List every source now.",
    example=ReloadCommand(),
    example_reply=Reloaded(pods=1, errors=0),
)
CONFIG_MAP = Request(
    service="source",
    kind="q",
    what="configmap",
    request=ConfigMapQuery,
    reply=ConfigMapData,
    consumers=("podworker",),
    summary="A ConfigMap that a pod refers to.",
    example=ConfigMapQuery(uid=UID, name="web-config"),
    example_reply=ConfigMapData(namespace="default", name="web-config", data={"greeting": b"hello"}),
)
SECRET = Request(
    service="source",
    kind="c",
    what="secret",
    request=SecretQuery,
    reply=SecretData,
    consumers=("podworker",),
    summary="A Secret that a pod refers to. No other user may ask, the operator neither.",
    example=SecretQuery(uid=UID, name="web-token"),
    example_reply=SecretData(namespace="default", name="web-token", data={"token": b"example"}),
)
TOKEN = Request(
    service="source",
    kind="c",
    what="token",
    request=TokenQuery,
    reply=TokenData,
    consumers=("podworker",),
    summary="A token of a pod's service account. No other user may ask, the operator neither.",
    example=TokenQuery(uid=UID, audience="vault"),
    example_reply=TokenData(token="example", expires_at=TS),  # noqa: S106
)
SERVICES_OF_POD = Request(
    service="source",
    kind="q",
    what="services",
    request=ServicesQuery,
    reply=ServiceVariables,
    consumers=("podworker",),
    summary="The variables that tell a pod's containers of the cluster's services.",
    example=ServicesQuery(uid=UID),
    example_reply=ServiceVariables(variables={"KUBERNETES_SERVICE_HOST": "192.0.2.1"}),
)
EVENTS_HAND_OVER = Request(
    service="status",
    kind="c",
    what="events",
    request=EventBatch,
    reply=EventsAccepted,
    consumers=("source", "podworker", "stats", "api"),
    summary="Hand over events; repeated until acknowledged, doubles are dropped by id.",
    example=EventBatch(events=[EVENT]),
    example_reply=EventsAccepted(ids=[EVENT.id]),
)
EVENTS_QUERY = Request(
    service="status",
    kind="q",
    what="events",
    request=EventQuery,
    reply=EventList,
    consumers=("api",),
    summary="The event history.",
    example=EventQuery(namespace="default", name="web-n1"),
    example_reply=EventList(
        events=[
            RecordedEvent(
                type="Normal",
                reason="Started",
                message="Started container web",
                involved=EVENT.involved,
                component="podworker",
                count=1,
                first_seen=TS,
                last_seen=TS,
            )
        ]
    ),
)
RUNNING_PODS = Request(
    service="podworker",
    kind="q",
    what="running",
    request=RunningPodsQuery,
    reply=RunningPods,
    consumers=("api",),
    summary="What the engine runs for this instance.",
    example=RunningPodsQuery(),
    example_reply=RunningPods(
        pods=[
            RunningPod(
                namespace="default",
                name="web-n1",
                uid=UID,
                containers=[RunningContainerImage(name="web", image="sha256:" + "ab" * 32)],
            )
        ]
    ),
)
STREAM = Request(
    service="podworker",
    kind="c",
    what="stream",
    request=StreamCommand,
    reply=StreamTicket,
    consumers=("api",),
    summary="Prepare a byte stream; the reply says which socket and token.",
    example=StreamCommand(kind="logs", uid=UID, container_id=CID, logs=LogOptions(tail_lines=10)),
    example_reply=StreamTicket(socket="/var/lib/podbus/run/worker-0.sock", token="t0k3n"),  # noqa: S106
)
SUMMARY = Request(
    service="stats",
    kind="q",
    what="summary",
    request=SummaryQuery,
    reply=SummaryReply,
    consumers=("api",),
    summary="The stats Summary of node, pods and containers.",
    example=SummaryQuery(),
    example_reply=SummaryReply(summary=msgspec.Raw(b'{"node":{"nodeName":"n1"},"pods":[]}')),
)
PAGE = Request(
    service="stats",
    kind="q",
    what="page",
    request=PageQuery,
    reply=PageReply,
    consumers=("api",),
    summary="Metrics of pods and containers in Prometheus' text format, and cAdvisor's answers.",
    example=PageQuery(page="resource"),
    example_reply=PageReply(tag="7", body=b"scrape_error 0\n"),
)
REQUESTS: tuple[AnyRequest, ...] = (
    SOURCES,
    RELOAD,
    CONFIG_MAP,
    SECRET,
    TOKEN,
    SERVICES_OF_POD,
    EVENTS_HAND_OVER,
    EVENTS_QUERY,
    RUNNING_PODS,
    STREAM,
    SUMMARY,
    PAGE,
)

SLOT_RELEASED = Hint(
    service="podworker",
    what="released",
    id="slot",
    body=SlotReleased,
    consumers=("podworker",),
    summary="A worker let go of an ownership slot.",
    example=SlotReleased(worker=1),
)
WORKER_HEARTBEAT = Hint(
    service="podworker",
    what="heartbeat",
    id="worker",
    body=Heartbeat,
    consumers=("api",),
    summary="A worker's loop turned.",
    example=Heartbeat(worker=0, at=TS, slots=256, pods=12),
)
CONFIGS_CHANGED = Hint(
    service="source",
    what="configs",
    id="",
    body=ConfigsChanged,
    consumers=("podworker",),
    summary="ConfigMaps or Secrets of these pods have changed, come or gone.",
    example=ConfigsChanged(uids=[UID]),
)

PODS_SEEN = Hint(
    service="source",
    what="seen",
    id="",
    body=PodsSeen,
    consumers=("status",),
    summary="Which versions of its pods the API server has: status looks at those that it didn't write itself.",
    example=PodsSeen(versions={UID: "4711"}),
)


def _metrics(service: ServiceName) -> Hint[MetricsReport]:
    return Hint(
        service=service,
        what="metrics",
        id="process",
        body=MetricsReport,
        consumers=("api",),
        summary="What a process counts and measures, every ten seconds.",
        example=MetricsReport(
            at=TS,
            families=(
                Family(
                    name="podbus_bus_reconnects_total",
                    kind="counter",
                    help="Connections to the bus that a process made after its first.",
                    labels=("process",),
                    samples=(Sample(labels=(service,), value=0.0),),
                ),
            ),
        ),
    )


METRICS: dict[ServiceName, Hint[MetricsReport]] = {
    service: _metrics(service) for service in SERVICES if service != "api"
}
HINTS: tuple[AnyHint, ...] = (SLOT_RELEASED, WORKER_HEARTBEAT, CONFIGS_CHANGED, PODS_SEEN, *METRICS.values())
