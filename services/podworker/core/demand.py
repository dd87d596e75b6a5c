"""What a pod asks of the node, for admission."""

from __future__ import annotations

from services.podworker.core.admission import Demand, NodeTraits
from services.podworker.core.model import Rejection
from services.podworker.core.node_match import tolerates_running, wants_node
from services.podworker.core.pod_resources import other_names, pod_request
from services.podworker.core.preemption import is_critical
from services.podworker.core.security_context import wants_app_armor
from services.podworker.core.sysctls import normal_sysctl, refused_sysctl
from shared.kube.pod import Pod

ANY_NODE = NodeTraits()


def demand_of(pod: Pod, node: NodeTraits = ANY_NODE) -> Demand:
    """Requests (not limits), as many as it needs at any moment, and the host ports of the regular containers. kubelet
    1.36: noderesources.Fit."""
    return Demand(
        cpu_milli=pod_request(pod, "cpu"),
        memory_bytes=pod_request(pod, "memory"),
        amounts={name: amount for name in other_names(pod) if (amount := pod_request(pod, name))},
        host_ports=tuple(
            (port.protocol, port.host_ip, port.host_port)
            for container in pod.spec.containers
            for port in container.ports
            if port.host_port
        ),
        priority=pod.spec.priority,
        is_critical=is_critical(pod, "api"),
        refused=_refusal(pod, node),
        is_untolerated=not tolerates_running(pod, node.taints),
        is_misplaced=not wants_node(pod, node.name, node.labels),
    )


def _refusal(pod: Pod, node: NodeTraits) -> Rejection | None:
    """kubelet 1.36: the handlers that come before the predicates, in their order."""
    names = [normal_sysctl(sysctl.name) for sysctl in pod.spec.security_context.sysctls]
    if name := refused_sysctl(names, node.kernel, node.allowed_unsafe_sysctls):
        return Rejection(reason="SysctlForbidden", message=f'forbidden sysctl: "{name}" not allowlisted')
    if pod.spec.host_network and (name := next((name for name in names if name.startswith("net.")), "")):
        return Rejection(
            reason="SysctlForbidden", message=f'forbidden sysctl: "{name}" not allowed with host net enabled'
        )
    if pod.spec.os is not None and pod.spec.os.name not in ("", "linux"):
        return Rejection(
            reason="PodOSNotSupported", message="Failed to admit pod as the OS field doesn't match node OS"
        )
    if pod.spec.security_context.supplemental_groups_policy == "Strict":
        return Rejection(
            reason="SupplementalGroupsPolicyNotSupported",
            message="SupplementalGroupsPolicy=Strict is not supported in this node",
        )
    if wants_app_armor(pod) and not node.has_app_armor:
        return Rejection(reason="AppArmor", message="Cannot enforce AppArmor: AppArmor is not enabled on the host")
    return None
