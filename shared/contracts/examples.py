"""What the registry's examples have in common."""

from __future__ import annotations

from shared.contracts.events import Event, InvolvedObject
from shared.contracts.pods import FileProblem, SkippedFile, SourceMarker
from shared.kube.status import ContainerState, ContainerStatus, PodCondition, PodIP, PodStatus, StateRunning

UID = "0f3c6b2e9a7d4c518e6f70a1b2c3d4e5"
CID = "4f5e" * 16
TS = 1764547200.0

MARKER = SourceMarker(
    v=1,
    node="n1",
    ts=TS,
    source="file",
    ready=True,
    epoch="5c1d0a",
    uids=[UID],
    origin="/etc/podbus/manifests",
    listed_at=TS,
    errors=[
        FileProblem(
            severity="error",
            path="/etc/podbus/manifests/web.yaml",
            line=4,
            document=1,
            field="spec.containers[0].image",
            message="Required value",
        )
    ],
    skipped=[SkippedFile(path="/etc/podbus/manifests/web.yaml.bak", reason="the extension .bak is not a manifest's")],
)
EVENT = Event(
    id="podworker-0-1764547200-1",
    time=TS,
    type="Normal",
    reason="Started",
    message="Started container web",
    involved=InvolvedObject(kind="Pod", name="web-n1", namespace="default", uid=UID, field_path="spec.containers{web}"),
    component="podworker",
)
POD_STATUS = PodStatus(
    phase="Running",
    conditions=[
        PodCondition(type="Ready", status="True", last_probe_time=None, last_transition_time="2025-12-01T00:00:02Z")
    ],
    host_ip="192.0.2.2",
    pod_ip="172.17.0.2",
    pod_ips=[PodIP(ip="172.17.0.2")],
    start_time="2025-12-01T00:00:00Z",
    container_statuses=[
        ContainerStatus(
            name="web",
            state=ContainerState(running=StateRunning(started_at="2025-12-01T00:00:02Z")),
            last_state=ContainerState(),
            ready=True,
            restart_count=0,
            image="busybox:1.36",
            image_id="docker://sha256:" + "ab" * 32,
            container_id="docker://" + CID,
            started=True,
        )
    ],
    qos_class="BestEffort",
)
