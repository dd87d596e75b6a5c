"""v1.PodStatus as podbus fills it: typed, frozen, in the key order that the kubelet writes.

Times are RFC 3339 strings in whole seconds. A field without a default is always written, even when empty.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from shared.kube.pod import ResourceRequirements

PodPhase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
ConditionStatus = Literal["True", "False", "Unknown"]
TERMINAL: tuple[PodPhase, ...] = ("Succeeded", "Failed")
"""A pod never leaves these."""
QOSClass = Literal["Guaranteed", "Burstable", "BestEffort"]


class _Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class StateWaiting(_Object, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class StateRunning(_Object, frozen=True, kw_only=True):
    started_at: str | None


class StateTerminated(_Object, frozen=True, kw_only=True):
    exit_code: int
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None
    finished_at: str | None
    container_id: str = msgspec.field(default="", name="containerID")


class ContainerState(_Object, frozen=True, kw_only=True):
    """At most one of the three is set; none set is written as {}."""

    waiting: StateWaiting | None = None
    running: StateRunning | None = None
    terminated: StateTerminated | None = None


class ContainerStatus(_Object, frozen=True, kw_only=True):
    name: str
    state: ContainerState
    last_state: ContainerState
    ready: bool
    restart_count: int
    image: str
    image_id: str = msgspec.field(name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")
    started: bool
    allocated_resources: dict[str, str | int | float] = {}
    """Requests, as granted."""
    resources: ResourceRequirements | None = None
    """What it really has; None = not known (of ephemeral containers)."""
    stop_signal: str = ""
    """Only where the container's definition names one."""


class PodCondition(_Object, frozen=True, kw_only=True):
    type: str
    observed_generation: int = 0
    status: ConditionStatus
    last_probe_time: None
    last_transition_time: str
    reason: str = ""
    message: str = ""


class PodIP(_Object, frozen=True, kw_only=True):
    """Also a host's (v1.HostIP has the same form)."""

    ip: str


class PodStatus(_Object, frozen=True, kw_only=True):
    observed_generation: int = 0
    phase: PodPhase
    conditions: list[PodCondition] = []
    message: str = ""
    reason: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")
    host_ips: list[PodIP] = msgspec.field(default=[], name="hostIPs")
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: list[PodIP] = msgspec.field(default=[], name="podIPs")
    start_time: str = ""
    init_container_statuses: list[ContainerStatus] = []
    container_statuses: list[ContainerStatus] = []
    qos_class: QOSClass
    ephemeral_container_statuses: list[ContainerStatus] = []

    def condition(self, kind: str) -> PodCondition | None:
        """The condition of that type, or None."""
        return next((c for c in self.conditions if c.type == kind), None)
