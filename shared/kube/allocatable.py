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


def reservation_faults(
    capacity: Mapping[str, int], eviction_hard: Mapping[str, str], reserved: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """What pods would have less than nothing of. `capacity`: cpu in thousandths, memory and ephemeral-storage in
    bytes; what isn't known isn't judged. `reserved`: the configuration's key -> amounts.

    kubelet 1.36: such a node doesn't start.
    """
    signals = {"memory": "memory.available", "ephemeral-storage": "nodefs.available"}
    faults = []
    for name, has in capacity.items():
        taken = {key: Quantity.parse(amounts[name]) for key, amounts in reserved.items() if name in amounts}
        amount = sum(one.milli() if name == "cpu" else one.value() for one in taken.values())
        signal = signals.get(name, "")
        kept = threshold(eviction_hard[signal], has) if signal in eviction_hard else 0
        if taken and amount + kept > has:
            words = [*(f"{key} {one}" for key, one in taken.items()), *([f"evictionHard {kept}"] if kept else [])]
            told = f"{has}m" if name == "cpu" else str(has)
            faults.append(f"{', '.join(taken)}: {name}: {' + '.join(words)} is more than the machine's {told}")
    return faults
