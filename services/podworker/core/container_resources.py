"""status.containerStatuses[].resources and allocatedResources: what a container was granted, and what it really has."""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core.model import RuntimeContainer
from services.podworker.core.pod_resources import bounded
from services.podworker.core.resources import CPU_PERIOD_MICROSECONDS, cpu_quota, cpu_shares, memory_limit
from shared.kube.pod import Container, Pod, ResourceRequirements
from shared.kube.quantity import Quantity, QuantityFormat
from shared.kube.status import ContainerStatus


def with_resources(
    status: ContainerStatus, pod: Pod, container: Container, newest: RuntimeContainer | None
) -> ContainerStatus:
    """`pod` has the resources that it's granted. kubelet: of a container that doesn't run these are shown."""
    granted = container.resources
    shown = ResourceRequirements(limits=granted.limits, requests=granted.requests)
    if newest is not None and newest.state == "running":
        shown = _actual(pod, container, newest)
    return replace(status, allocated_resources=dict(granted.requests), resources=shown)


def _actual(pod: Pod, container: Container, instance: RuntimeContainer) -> ResourceRequirements:
    """The granted amounts where the engine shows the numbers that they give, else what its numbers say."""
    sized = bounded(pod, container)
    limits: dict[str, str | int | float] = dict(container.resources.limits)
    requests: dict[str, str | int | float] = dict(container.resources.requests)
    has_cpu, has_memory = "cpu" in limits, "memory" in limits
    if has_cpu and instance.cpu_quota != cpu_quota(sized):
        _put(limits, "cpu", Quantity.from_milli(instance.cpu_quota * 1000 // CPU_PERIOD_MICROSECONDS))
    if "cpu" in requests and instance.cpu_shares != cpu_shares(sized):
        _put(requests, "cpu", Quantity.from_milli(-(-instance.cpu_shares * 1000 // 1024)))
    if has_memory and instance.memory != memory_limit(sized):
        _put(limits, "memory", Quantity.from_value(instance.memory, QuantityFormat.BINARY_SI))
    return ResourceRequirements(limits=limits, requests=requests)


def _put(amounts: dict[str, str | int | float], name: str, amount: Quantity) -> None:
    if amount.is_zero():
        del amounts[name]
    else:
        amounts[name] = str(amount)
