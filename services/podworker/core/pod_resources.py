"""What a pod as a whole asks for and may have: its own resources, else what its containers add up to, and overhead.

kubelet 1.36: resourcehelper.PodRequests, PodLimits; pod-level resources (beta since 1.34).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from shared.kube.pod import Container, Pod, Quantities, is_sidecar
from shared.kube.quantity import Quantity

HUGE_PAGES = "hugepages-"
_OF_POD = ("cpu", "memory")


def milli_value(text: str | int | float) -> int:
    """A quantity as thousandths, rounded up. Raises QuantityError when it isn't one."""
    return Quantity.parse(str(text)).milli()


def value(text: str | int | float) -> int:
    """A quantity as whole units, rounded up. Raises QuantityError when it isn't one."""
    return Quantity.parse(str(text)).value()


def amount_of(quantities: Quantities, name: str) -> int:
    """The entry in thousandths for cpu, in whole units for all others; 0 when there is none."""
    text = quantities.get(name, 0)
    return milli_value(text) if name == "cpu" else value(text)


def needed_at_once(pod: Pod, amount: Callable[[Container], int]) -> int:
    """The most that the pod needs at any moment of its life of what `amount` says for each container.

    kubelet: the regular containers with all sidecars, or an init container with the sidecars that run already.
    """
    sidecars = most = 0
    for container in pod.spec.init_containers:
        if is_sidecar(container):
            sidecars += amount(container)
            most = max(most, sidecars)
        else:
            most = max(most, sidecars + amount(container))
    return max(most, sidecars + sum(amount(container) for container in pod.spec.containers))


def has_pod_level(pod: Pod) -> bool:
    """Whether the pod has resources of its own."""
    own = pod.spec.resources
    return any(name in _OF_POD or name.startswith(HUGE_PAGES) for name in {**own.requests, **own.limits})


def pod_request(pod: Pod, name: str, *, with_overhead: bool = True) -> int:
    """kubelet: the pod's own, else what its containers need at once, else the pod's limit. Overhead comes on top."""
    own = pod.spec.resources
    if name in own.requests:
        wanted = amount_of(own.requests, name)
    else:
        wanted = needed_at_once(pod, lambda container: amount_of(container.resources.requests, name))
        if not wanted:
            wanted = amount_of(own.limits, name)
    return wanted + (amount_of(pod.spec.overhead, name) if with_overhead else 0)


def pod_limit(pod: Pod, name: str) -> int:
    """The pod's own, else the containers' if every one has it; 0 = none. Overhead comes on top of one."""
    own = amount_of(pod.spec.resources.limits, name)
    if not own:
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        if not all(amount_of(container.resources.limits, name) > 0 for container in containers):
            return 0
        own = needed_at_once(pod, lambda container: amount_of(container.resources.limits, name))
    return own + amount_of(pod.spec.overhead, name)


def bounded(pod: Pod, container: Container) -> Container:
    """The container with the pod's own limit of cpu and memory where it has none."""
    resources = container.resources
    missing = {
        name: text
        for name, text in pod.spec.resources.limits.items()
        if name in _OF_POD and name not in resources.limits
    }
    if not missing:
        return container
    return replace(container, resources=replace(resources, limits={**resources.limits, **missing}))


def other_names(pod: Pod) -> list[str]:
    """Of all resources but cpu and memory that the pod asks for: ephemeral-storage, huge pages, extended ones."""
    lists: Iterable[Quantities] = (
        pod.spec.overhead,
        pod.spec.resources.requests,
        pod.spec.resources.limits,
        *(c.resources.requests for c in (*pod.spec.init_containers, *pod.spec.containers)),
    )
    return sorted({name for quantities in lists for name in quantities} - {"cpu", "memory"})


def huge_page_limits(pod: Pod) -> dict[str, int]:
    """By size ("2Mi"), in bytes: what all containers may have at once."""
    own = pod.spec.resources.limits
    names = {
        name
        for quantities in (own, *(c.resources.limits for c in (*pod.spec.init_containers, *pod.spec.containers)))
        for name in quantities
        if name.startswith(HUGE_PAGES)
    }
    return {
        name.removeprefix(HUGE_PAGES): amount_of(own, name)
        or needed_at_once(pod, lambda container, name=name: amount_of(container.resources.limits, name))  # type: ignore[misc]
        for name in sorted(names)
    }
