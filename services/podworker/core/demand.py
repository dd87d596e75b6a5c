"""What a pod asks of the node, for admission."""

from __future__ import annotations

from services.podworker.core.admission import Demand
from services.podworker.core.resources import cpu_milli, memory_bytes
from shared.kube.pod import Pod


def demand_of(pod: Pod) -> Demand:
    """Requests (not limits) of the regular containers, and the host ports. kubelet 1.36: noderesources.Fit."""
    requests = [container.resources.requests for container in pod.spec.containers]
    return Demand(
        cpu_milli=sum(cpu_milli(r) for r in requests),
        memory_bytes=sum(memory_bytes(r) for r in requests),
        host_ports=tuple(
            (port.protocol, port.host_ip, port.host_port)
            for container in pod.spec.containers
            for port in container.ports
            if port.host_port
        ),
    )
