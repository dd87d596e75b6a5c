"""What a pod asks of the node, for admission."""

from __future__ import annotations

from services.podworker.core.admission import Demand
from services.podworker.core.resources import cpu_milli, memory_bytes, needed_at_once
from shared.kube.pod import Pod


def demand_of(pod: Pod) -> Demand:
    """Requests (not limits), as many as it needs at any moment, and the host ports of the regular containers. kubelet
    1.36: noderesources.Fit."""
    return Demand(
        cpu_milli=needed_at_once(pod, lambda container: cpu_milli(container.resources.requests)),
        memory_bytes=needed_at_once(pod, lambda container: memory_bytes(container.resources.requests)),
        host_ports=tuple(
            (port.protocol, port.host_ip, port.host_port)
            for container in pod.spec.containers
            for port in container.ports
            if port.host_port
        ),
    )
