"""The content of a pod's /etc/hosts, byte by byte the kubelet's (lifecycle 7.5)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from services.podworker.core.host_names import pod_domain, pod_hostname
from services.podworker.core.node_facts import NodeFacts
from shared.kube.pod import HostAlias, Pod

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


class HostsFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod's /etc/hosts holds beside its addresses, which are known once its sandbox runs."""

    hostname: str = ""
    domain: str = ""
    aliases: tuple[HostAlias, ...] = ()
    is_the_nodes: bool = False
    """With hostNetwork: the node's own file, and the aliases."""


def pod_hosts_file(pod: Pod, node: NodeFacts) -> HostsFile:
    return HostsFile(
        hostname=pod_hostname(pod, node),
        domain=pod_domain(pod, node),
        aliases=tuple(pod.spec.host_aliases),
        is_the_nodes=pod.spec.host_network,
    )


def hosts_file(ips: Sequence[str], hosts: HostsFile) -> str:
    """The file of a pod with its own network: one line per pod IP, `<ip>\\t[<fqdn>\\t]<hostname>`."""
    name = f"{hosts.hostname}.{hosts.domain}\t{hosts.hostname}" if hosts.domain else hosts.hostname
    return HEADER + _LOCAL + "".join(f"{ip}\t{name}\n" for ip in ips) + _alias_lines(hosts.aliases)


def host_network_hosts_file(node_file: str, hosts: HostsFile) -> str:
    """The file of a hostNetwork pod: the node's own (its text) under a header."""
    return HEADER_HOST_NETWORK + node_file + _alias_lines(hosts.aliases)


def _alias_lines(aliases: Sequence[HostAlias]) -> str:
    if not aliases:
        return ""
    lines = ["\n# Entries added by HostAliases.", *("\t".join([one.ip, *one.hostnames]) for one in aliases)]
    return "\n".join(lines) + "\n"
