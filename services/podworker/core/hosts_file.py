"""The content of a pod's /etc/hosts, byte by byte the kubelet's (lifecycle 7.5)."""

from __future__ import annotations

from collections.abc import Sequence

HEADER = "# Kubernetes-managed hosts file.\n"
HEADER_HOST_NETWORK = "# Kubernetes-managed hosts file (host network).\n"
_LOCAL = (
    "127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\n"
    "fe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\n"
    "fe00::1\tip6-allnodes\n"
    "fe00::2\tip6-allrouters\n"
)


def hosts_file(ips: Sequence[str], hostname: str, domain: str = "") -> str:
    """The file of a pod with its own network: one line per pod IP, `<ip>\\t[<fqdn>\\t]<hostname>`."""
    name = f"{hostname}.{domain}\t{hostname}" if domain else hostname
    return HEADER + _LOCAL + "".join(f"{ip}\t{name}\n" for ip in ips)


def host_network_hosts_file(node_file: str) -> str:
    """The file of a hostNetwork pod: the node's own (its text) under a header."""
    return HEADER_HOST_NETWORK + node_file
