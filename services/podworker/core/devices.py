"""Which of the node's devices a pod gets at admission, and which of those each of its containers has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from services.podworker.core.pod_resources import amount_of
from shared.kube.devices import Devices
from shared.kube.pod import Container, Pod, is_sidecar


def free_devices(wanted: Mapping[str, int], devices: Devices, taken: Iterable[Mapping[str, Sequence[str]]]) -> Devices:
    """As many units of each resource as are wanted, of those that no other pod holds; admission has counted them."""
    held: dict[str, Counter[str]] = {}
    for one in taken:
        for name, units in one.items():
            held.setdefault(name, Counter()).update(units)
    found: Devices = {}
    for name, amount in wanted.items():
        if name in devices and amount > 0:
            free = Counter(devices[name])
            free.subtract(held.get(name, Counter()))
            # In the order of the list, as often as each is free.
            found[name] = tuple(unit for unit in free for _ in range(max(0, free[unit])))[:amount]
    return found


def devices_of(pod: Pod, container: Container, held: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A container's part of what its pod holds: sidecars and regular containers have their own; a plain init container
    uses what is left to those that come after it."""
    return tuple(
        unit
        for name, units in sorted(held.items())
        for unit in units[_first(pod, container, name) :][: _asks(container, name)]
    )


def _asks(container: Container, name: str) -> int:
    return amount_of(container.resources.requests, name) or amount_of(container.resources.limits, name)


def _first(pod: Pod, container: Container, name: str) -> int:
    first = 0
    for other in pod.spec.init_containers:
        if other.name == container.name:
            return first
        first += _asks(other, name) if is_sidecar(other) else 0
    for other in pod.spec.containers:
        if other.name == container.name:
            break
        first += _asks(other, name)
    return first
