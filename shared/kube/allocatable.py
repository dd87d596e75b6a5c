"""What of a node's capacity pods may have: minus what is reserved for the system and kept back from eviction."""

from __future__ import annotations

from collections.abc import Mapping

from shared.kube.quantity import Quantity


def threshold(text: str, capacity: int) -> int:
    """An eviction threshold ("100Mi", "10%") in the capacity's unit. Raises QuantityError, ValueError."""
    if text.endswith("%"):
        return int(capacity * float(text[:-1]) / 100)
    return Quantity.parse(text).value()


def allocatable_cpu_milli(capacity_milli: int, *reserved: Mapping[str, str]) -> int:
    """kubelet 1.36: capacity - kubeReserved - systemReserved, at least 0."""
    return max(0, capacity_milli - sum(Quantity.parse(r["cpu"]).milli() for r in reserved if "cpu" in r))


def allocatable_bytes(
    capacity: int, what: str, signal: str, eviction_hard: Mapping[str, str], *reserved: Mapping[str, str]
) -> int:
    """Memory (`memory.available`) and ephemeral-storage (`nodefs.available`): the same, minus the hard threshold."""
    taken = sum(Quantity.parse(r[what]).value() for r in reserved if what in r)
    kept = threshold(eviction_hard[signal], capacity) if signal in eviction_hard else 0
    return max(0, capacity - taken - kept)


def max_pods(limit: int, per_core: int, cores: int) -> int:
    """min(maxPods, cores * podsPerCore); podsPerCore 0 = no limit by cores."""
    return min(limit, cores * per_core) if per_core > 0 else limit
