"""Whether a new pod still fits on the node. Judged once: an admitted pod is never asked again.

kubelet 1.36 (lifecycle.predicateAdmitHandler, preemption.CriticalPodAdmissionHandler): requests are summed,
not limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from services.podworker.core.model import Rejection
from shared.kube.devices import Devices
from shared.kube.scheduling import Taint

_ANY_ADDRESS = "0.0.0.0"  # noqa: S104  what the kubelet compares an unset hostIP as; nothing is bound here


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod asks of the node."""

    cpu_milli: int
    memory_bytes: int
    host_ports: tuple[tuple[str, str, int], ...]
    """(protocol, host IP or "", port)"""
    amounts: dict[str, int] = {}
    """Of all other resources: ephemeral-storage, huge pages, extended ones."""
    refused: Rejection | None = None
    """Why it can't run here, whatever room there is."""
    priority: int | None = None
    is_critical: bool = False
    """By its priority; each static pod is, too."""
    is_misplaced: bool = False
    """Its selector or affinity names other nodes."""
    is_untolerated: bool = False
    """The node has a taint NoExecute that it doesn't tolerate."""


class NodeTraits(msgspec.Struct, frozen=True, kw_only=True):
    """What the node is, beside what it has room for."""

    name: str = ""
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    kernel: tuple[int, int] = (0, 0)
    """Major and minor version."""
    allowed_unsafe_sysctls: tuple[str, ...] = ()
    has_app_armor: bool = False
    """The engine can apply profiles of AppArmor."""


class NodeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the node has for pods."""

    cpu_milli: int
    memory_bytes: int
    pods: int
    amounts: dict[str, int] = {}
    """Of all other resources; one that isn't here the node has none of."""
    devices: Devices = {}
    traits: NodeTraits = NodeTraits()


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What all admitted, not ended pods take."""

    pods: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0
    amounts: dict[str, int] = {}
    host_ports: dict[tuple[str, str, int], str] = {}
    """(protocol, host IP or "", port) -> namespace/name of the pod that has it."""


def judge(demand: Demand, limits: NodeLimits, usage: Usage, source: str) -> Rejection | None:
    """None when the pod fits beside `usage`.

    A critical pod (each static one is) that only lacks room takes others' places; when there are none, it says that,
    but first whatever else is wrong. Any other pod of the API says OutOf<resource>.
    """
    if demand.refused is not None:
        return demand.refused
    others = _others_wrong(demand, usage, source)
    short = _short(demand, limits, usage)
    if short and source == "api" and not demand.is_critical:
        return _out_of(*short[0])
    if short and not others:
        return nobody_to_preempt({name: used + wanted - capacity for name, wanted, used, capacity in short})
    return others[0] if others else None


def lacking(demand: Demand, limits: NodeLimits, usage: Usage, source: str) -> dict[str, int]:
    """By resource, how much room a critical pod lacks for which others may be preempted: nothing else is wrong."""
    is_critical = demand.is_critical or source != "api"
    if not is_critical or demand.refused is not None or _others_wrong(demand, usage, source):
        return {}
    return {name: used + wanted - capacity for name, wanted, used, capacity in _short(demand, limits, usage)}


def nobody_to_preempt(lacks: Mapping[str, int]) -> Rejection:
    missing = "".join(f"(res: {name}, q: {amount}), " for name, amount in lacks.items())
    return Rejection(
        reason="UnexpectedAdmissionError",
        message="Unexpected error while attempting to recover from admission failure: preemption: "
        f"error finding a set of pods to preempt: no set of running pods found to reclaim resources: [{missing}]",
    )


def _others_wrong(demand: Demand, usage: Usage, source: str) -> list[Rejection]:
    """Beside the lack of room, in the kubelet's order."""
    taken = _taken_port(demand, usage)
    wrong = []
    if demand.is_misplaced:
        wrong.append(_predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"))
    if taken:
        wrong.append(_predicate("NodePorts", f"node(s) didn't have free ports for the requested pod ports: {taken}"))
    if demand.is_untolerated and source == "api":
        wrong.append(_predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate"))
    return wrong


def _short(demand: Demand, limits: NodeLimits, usage: Usage) -> list[tuple[str, int, int, int]]:
    """(resource, wanted, used, capacity) of each that doesn't suffice."""
    return [
        (name, wanted, used, capacity)
        for name, wanted, used, capacity in (
            ("pods", 1, usage.pods, limits.pods),
            ("cpu", demand.cpu_milli, usage.cpu_milli, limits.cpu_milli),
            ("memory", demand.memory_bytes, usage.memory_bytes, limits.memory_bytes),
            *(
                (name, wanted, usage.amounts.get(name, 0), limits.amounts.get(name, 0))
                for name, wanted in sorted(demand.amounts.items())
            ),
        )
        if wanted > 0 and used + wanted > capacity
    ]


def summed(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Of each resource what all take of it."""
    total: dict[str, int] = {}
    for one in amounts:
        for name, amount in one.items():
            total[name] = total.get(name, 0) + amount
    return total


def _predicate(name: str, why: str) -> Rejection:
    return Rejection(reason=name, message=f"Predicate {name} failed: {why}")


def _out_of(name: str, wanted: int, used: int, capacity: int) -> Rejection:
    return Rejection(
        reason=f"OutOf{name}",
        message=f"Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, capacity: {capacity}",
    )


def _taken_port(demand: Demand, usage: Usage) -> str:
    """Which ports others have, and who; "" = none. kubelet 1.36 appends a predicate's detail behind a colon too."""
    return ", ".join(
        f"{port}/{protocol or 'TCP'} is taken by {holder}"
        for protocol, address, port in demand.host_ports
        for used, holder in usage.host_ports.items()
        if _collide((protocol, address, port), used)
    )


def _collide(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    """The same port and protocol on the same address, or either on all addresses."""
    (protocol, address, port), (other_protocol, other_address, other_port) = one, other
    if (protocol or "TCP", port) != (other_protocol or "TCP", other_port):
        return False
    addresses = {address or _ANY_ADDRESS, other_address or _ANY_ADDRESS}
    return len(addresses) == 1 or _ANY_ADDRESS in addresses
