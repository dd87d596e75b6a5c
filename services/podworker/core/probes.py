"""Probes: which of them run now, what their results amount to, and what the pod's memory keeps of it (lifecycle 5).

Where the kubelet counts results of an old container for the new one, podbus begins anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec.structs import replace

from services.podworker.core.model import PodMemory, RuntimeContainer, RuntimePod, Verdict, Verdicts
from services.podworker.core.probe_checks import Check, check_of
from services.podworker.core.readiness import is_held_by_post_start
from shared.kube.pod import Container, Pod, Probe

ProbeKind = Literal["startup", "liveness", "readiness"]
ProbeKey = tuple[str, ProbeKind]
"""(the container's name, the kind)"""
Outcome = Literal["success", "failure"]

LOCAL_HOST = "127.0.0.1"


class WantedProbe(msgspec.Struct, frozen=True, kw_only=True):
    """A probe that runs now, against one instance of its container."""

    key: ProbeKey
    container_id: str
    probe: Probe
    check: Check
    not_before: float
    """The end of its initialDelaySeconds, on the node's wall clock."""
    is_unready: bool
    """Of readiness: the container hasn't been found ready, so the next look may ask at once."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict that a prober has come to."""

    container_id: str
    kind: ProbeKind
    verdict: Outcome


class Streak(msgspec.Struct, frozen=True, kw_only=True):
    """How often in a row the last outcome came."""

    outcome: Outcome | None = None
    length: int = 0


def declared_probes(pod: Pod) -> Iterator[tuple[Container, ProbeKind, Probe]]:
    """Of regular containers and of sidecars; plain init containers and ephemeral ones have none."""
    sidecars = [c for c in pod.spec.init_containers if c.restart_policy == "Always"]
    for container in (*sidecars, *pod.spec.containers):
        if container.startup_probe is not None:
            yield container, "startup", container.startup_probe
        if container.liveness_probe is not None:
            yield container, "liveness", container.liveness_probe
        if container.readiness_probe is not None:
            yield container, "readiness", container.readiness_probe


def wanted_probes(pod: Pod, memory: PodMemory, runtime: RuntimePod, node_ip: str) -> dict[ProbeKey, WantedProbe]:
    """What is to be probed, as the memory's verdicts are; a probe that isn't in here rests."""
    wanted: dict[ProbeKey, WantedProbe] = {}
    for container, kind, probe in declared_probes(pod):
        instance = runtime.newest(container.name)
        if instance is None or instance.state != "running" or is_held_by_post_start(container, instance, memory):
            continue
        verdicts = memory.verdicts.get(instance.id, Verdicts())
        if not _is_due(kind, container, verdicts, is_ending=_is_ending(memory, instance)):
            continue
        started_at = instance.created_at if instance.started_at is None else instance.started_at
        wanted[container.name, kind] = WantedProbe(
            key=(container.name, kind),
            container_id=instance.id,
            probe=probe,
            check=check_of(probe, container, _address(pod, instance, runtime, node_ip)),
            not_before=started_at + probe.initial_delay_seconds,
            is_unready=kind == "readiness" and verdicts.readiness != "success",
        )
    return wanted


def _is_due(kind: ProbeKind, container: Container, verdicts: Verdicts, *, is_ending: bool) -> bool:
    """Before it has started a container is asked for that alone; a container that is to be restarted isn't asked any
    more, and one that ends only whether it's still ready."""
    if kind == "startup":
        return verdicts.startup == "" and not is_ending
    if container.startup_probe is not None and verdicts.startup != "success":
        return False
    return kind == "readiness" or (verdicts.liveness != "failure" and not is_ending)


def _is_ending(memory: PodMemory, instance: RuntimeContainer) -> bool:
    return memory.termination is not None or memory.failure is not None or instance.id in memory.stops


def _address(pod: Pod, instance: RuntimeContainer, runtime: RuntimePod, node_ip: str) -> str:
    """Where the container's ports are; "" = not known."""
    if pod.spec.host_network:
        return node_ip or LOCAL_HOST
    ips = next((s.ips for s in runtime.sandboxes if s.id == instance.sandbox_id), ())
    of_family = [ip for ip in ips if (":" in ip) == (":" in node_ip)]
    return next(iter((*of_family, *ips)), "")


def count(streak: Streak, outcome: Outcome, probe: Probe) -> tuple[Streak, Outcome | None]:
    """One more outcome; the verdict once so many in a row were equal, None below that: what was found before holds."""
    length = streak.length + 1 if streak.outcome == outcome else 1
    threshold = probe.success_threshold if outcome == "success" else probe.failure_threshold
    return Streak(outcome=outcome, length=length), outcome if length >= threshold else None


def with_verdict(memory: PodMemory, found: Found) -> PodMemory:
    """The memory with a verdict; the same memory when that says nothing new, so that nothing is stored."""
    known = memory.verdicts.get(found.container_id, Verdicts())
    if _in_effect(known, found.kind) == found.verdict:
        return memory
    match found.kind:
        case "startup":
            known = replace(known, startup=found.verdict)
        case "liveness":
            known = replace(known, liveness=found.verdict)
        case "readiness":
            known = replace(known, readiness=found.verdict)
    return replace(memory, verdicts={**memory.verdicts, found.container_id: known})


def _in_effect(verdicts: Verdicts, kind: ProbeKind) -> Verdict:
    """What is assumed as long as nothing was found counts as found."""
    match kind:
        case "startup":
            return verdicts.startup
        case "liveness":
            return verdicts.liveness or "success"
        case "readiness":
            return verdicts.readiness or "failure"


def with_verdicts(memory: PodMemory, found: list[Found], runtime: RuntimePod) -> PodMemory:
    """The memory with new verdicts and without those of containers that are gone."""
    there = {container.id for container in runtime.containers}
    if not memory.verdicts.keys() <= there:
        memory = replace(memory, verdicts={id_: v for id_, v in memory.verdicts.items() if id_ in there})
    for one in found:
        if one.container_id in there:
            memory = with_verdict(memory, one)
    return memory
