"""Whether the range of addresses that the cluster gave this node is the one that its pods have."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network

from services.status.core.model import NodeEvent


def range_warning(node: str, pod_cidrs: Sequence[str], subnets: Sequence[str]) -> NodeEvent | None:
    """None = nothing to tell, or one of the two isn't known. Routes that others make by podCIDR would lead nowhere."""
    if not pod_cidrs or not subnets:
        return None
    wrong = [cidr for cidr in pod_cidrs if not _is_among(cidr, subnets)]
    if not wrong:
        return None
    message = (
        f"Node {node} was given podCIDR {', '.join(wrong)}, and its pods are in {', '.join(subnets)}: make a Docker"
        " network with that subnet and name it in PODBUS_NETWORK, or routes to its pods lead nowhere"
    )
    return NodeEvent(type="Warning", reason="CIDRNotAvailable", message=message)


def _is_among(cidr: str, subnets: Sequence[str]) -> bool:
    try:
        return ip_network(cidr, strict=False) in {ip_network(subnet, strict=False) for subnet in subnets}
    except ValueError:
        return cidr in subnets
