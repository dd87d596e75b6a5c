"""dnsPolicy -> resolv.conf, and the pod's host name (lifecycle 7.5)."""

from __future__ import annotations

from services.podworker.core.events_text import PodEvent, full_name, missing_cluster_dns
from services.podworker.core.node_facts import DNSConfig, NodeFacts
from shared.kube.pod import Pod

MAX_SERVERS = 3
MAX_SEARCHES = 32
MAX_SEARCH_CHARACTERS = 2048
MAX_HOSTNAME = 63


def pod_hostname(pod: Pod, node: NodeFacts) -> str:
    """spec.hostname, else the pod's name cut to 63, "-" and "." trimmed; with hostNetwork the node's name."""
    if pod.spec.host_network:
        return node.node_name
    if pod.spec.hostname:
        return pod.spec.hostname
    return pod.metadata.name[:MAX_HOSTNAME].rstrip("-.")


def wants_cluster_dns(pod: Pod) -> bool:
    """Whether the policy asks for the cluster's DNS servers (with hostNetwork ClusterFirst means Default)."""
    policy = pod.spec.dns_policy
    return policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not pod.spec.host_network)


def falls_back_to_default_dns(pod: Pod, node: NodeFacts) -> bool:
    """The cluster's DNS is asked for but not configured: event MissingClusterDNS, then policy Default."""
    return wants_cluster_dns(pod) and not node.cluster_dns


def dns_events(pod: Pod, node: NodeFacts) -> list[PodEvent]:
    """What people should know of the pod's DNS, told once per pod (the kubelet tells it at each start)."""
    if not falls_back_to_default_dns(pod, node):
        return []
    name = full_name(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
    return [missing_cluster_dns(name)]


def pod_dns(pod: Pod, node: NodeFacts) -> DNSConfig:
    """What the sandbox's resolv.conf holds; an empty one leaves what the engine makes of the host's file."""
    if not wants_cluster_dns(pod) or falls_back_to_default_dns(pod, node):
        return DNSConfig()
    searches = (*_cluster_searches(pod.metadata.namespace, node.cluster_domain), *node.host_dns.searches)
    return DNSConfig(
        servers=node.cluster_dns[:MAX_SERVERS],
        searches=_fitting(tuple(dict.fromkeys(searches))),
        options=("ndots:5",),
    )


def parse_resolv_conf(text: str) -> DNSConfig:
    """resolv.conf's text -> servers, searches (the last line wins) and options. Other lines are ignored."""
    servers: list[str] = []
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    for line in text.splitlines():
        words = line.split("#", 1)[0].split(";", 1)[0].split()
        match words:
            case ["nameserver", server, *_]:
                servers.append(server)
            case ["search", *names]:
                # kubelet: a trailing dot is dropped, but "." alone is kept.
                searches = tuple(name.rstrip(".") or "." for name in names)
            case ["options", *names]:
                options = tuple(names)
            case _:
                pass
    return DNSConfig(tuple(servers), searches, options)


def _cluster_searches(namespace: str, domain: str) -> tuple[str, ...]:
    if not domain:
        return ()
    return (f"{namespace}.svc.{domain}", f"svc.{domain}", domain)


def _fitting(searches: tuple[str, ...]) -> tuple[str, ...]:
    """As many as the limits of a resolv.conf allow (32 names, 2048 characters with the blanks between)."""
    kept: list[str] = []
    length = 0
    for name in searches[:MAX_SEARCHES]:
        length += len(name) + (1 if kept else 0)
        if length > MAX_SEARCH_CHARACTERS:
            break
        kept.append(name)
    return tuple(kept)
