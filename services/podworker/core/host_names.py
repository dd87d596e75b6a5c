"""What a pod calls itself (lifecycle 7.5)."""

from __future__ import annotations

from services.podworker.core.node_facts import NodeFacts
from shared.kube.pod import Pod

MAX_HOSTNAME = 63
MAX_KERNEL_HOSTNAME = 64


def pod_hostname(pod: Pod, node: NodeFacts) -> str:
    """The override, spec.hostname, else the pod's name cut to 63, "-" and "." trimmed; with hostNetwork the node's
    name."""
    spec = pod.spec
    if spec.host_network:
        return node.node_name
    if spec.hostname_override is not None:
        return spec.hostname_override
    return spec.hostname or pod.metadata.name[:MAX_HOSTNAME].rstrip("-.")


def pod_domain(pod: Pod, node: NodeFacts) -> str:
    """What follows the host name in its full name; "" = it has none."""
    spec = pod.spec
    if not spec.subdomain or spec.hostname_override is not None:
        return ""
    return f"{spec.subdomain}.{pod.metadata.namespace}.svc.{node.cluster_domain}"


def kernel_hostname(pod: Pod, node: NodeFacts) -> str:
    """What `hostname` says: the full name if the pod asks for it and has one."""
    hostname, domain = pod_hostname(pod, node), pod_domain(pod, node)
    return f"{hostname}.{domain}" if domain and pod.spec.set_hostname_as_fqdn else hostname


def hostname_fault(pod: Pod, node: NodeFacts) -> str:
    """Why the sandbox can't have its name; "" = it can. The kubelet's words."""
    name = kernel_hostname(pod, node)
    if pod.spec.host_network or len(name) <= MAX_KERNEL_HOSTNAME:
        return ""
    return (
        f"failed to construct FQDN from pod hostname and cluster domain, FQDN {name} is too long"
        f" ({MAX_KERNEL_HOSTNAME} characters is the max, {len(name)} characters requested)"
    )
