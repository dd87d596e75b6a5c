"""dnsPolicy and dnsConfig -> resolv.conf (lifecycle 7.5)."""

from __future__ import annotations

from msgspec.structs import replace

from services.podworker.core.events_text import (
    PodEvent,
    full_name,
    missing_cluster_dns,
    searches_omitted,
    servers_omitted,
)
from services.podworker.core.node_facts import DNSConfig, NodeFacts
from shared.kube.pod import Pod, PodDNSConfig

MAX_SERVERS = 3
MAX_SEARCHES = 32
MAX_SEARCH_CHARACTERS = 2048
MAX_SEARCH_NAME = 253


def wants_cluster_dns(pod: Pod) -> bool:
    """Whether the policy asks for the cluster's DNS servers (with hostNetwork ClusterFirst means Default)."""
    policy = pod.spec.dns_policy
    return policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not pod.spec.host_network)


def falls_back_to_default_dns(pod: Pod, node: NodeFacts) -> bool:
    """The cluster's DNS is asked for but not configured: event MissingClusterDNS, then policy Default."""
    return wants_cluster_dns(pod) and not node.cluster_dns


def dns_events(pod: Pod, node: NodeFacts) -> list[PodEvent]:
    """What people should know of the pod's DNS, told once per pod (the kubelet tells it at each start)."""
    events = []
    if falls_back_to_default_dns(pod, node):
        events.append(missing_cluster_dns(full_name(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)))
    wanted, fitted = _wanted(pod, node), _fitted(_wanted(pod, node))
    if fitted.servers != wanted.servers:
        events.append(servers_omitted(fitted.servers))
    if fitted.searches != wanted.searches:
        events.append(searches_omitted(fitted.searches))
    return events


def pod_dns(pod: Pod, node: NodeFacts) -> DNSConfig:
    """What the sandbox's resolv.conf holds; an empty one leaves what the engine makes of the host's file."""
    wanted = _wanted(pod, node)
    fitted = _fitted(wanted)
    is_the_hosts = _base(pod, node) is node.host_dns and pod.spec.dns_config == PodDNSConfig() and fitted == wanted
    return DNSConfig() if is_the_hosts and node.engine_copies_host_dns else fitted


def resolv_conf(dns: DNSConfig) -> str:
    """The file's text, in the kubelet's order of lines."""
    lines = [f"nameserver {server}" for server in dns.servers]
    lines += [
        f"{word} {' '.join(values)}" for word, values in (("search", dns.searches), ("options", dns.options)) if values
    ]
    return "\n".join(lines) + "\n"


def _base(pod: Pod, node: NodeFacts) -> DNSConfig:
    """What the policy gives."""
    if pod.spec.dns_policy == "None":
        return DNSConfig()
    if not wants_cluster_dns(pod) or falls_back_to_default_dns(pod, node):
        return node.host_dns
    searches = (*_cluster_searches(pod.metadata.namespace, node.cluster_domain), *node.host_dns.searches)
    return DNSConfig(servers=node.cluster_dns, searches=tuple(dict.fromkeys(searches)), options=("ndots:5",))


def _wanted(pod: Pod, node: NodeFacts) -> DNSConfig:
    """With what dnsConfig adds: an option of the same name takes the place of the policy's."""
    base, added = _base(pod, node), pod.spec.dns_config
    if added == PodDNSConfig():
        return base
    options = dict(_split_option(option) for option in base.options)
    options |= {option.name: option.value or "" for option in added.options}
    return DNSConfig(
        servers=tuple(dict.fromkeys((*base.servers, *added.nameservers))),
        searches=tuple(dict.fromkeys((*base.searches, *added.searches))),
        options=tuple(f"{name}:{value}" if value else name for name, value in options.items()),
    )


def _split_option(option: str) -> tuple[str, str]:
    name, _, value = option.partition(":")
    return name, value


def _fitted(dns: DNSConfig) -> DNSConfig:
    return replace(dns, servers=dns.servers[:MAX_SERVERS], searches=_fitting(dns.searches))


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
    """As many as the limits of a resolv.conf allow (32 names, 2048 characters with the blanks between), and none that
    a resolver stumbles over."""
    kept: list[str] = []
    length = 0
    for name in searches[:MAX_SEARCHES]:
        if len(name) > MAX_SEARCH_NAME:
            continue
        length += len(name) + (1 if kept else 0)
        if length > MAX_SEARCH_CHARACTERS:
            break
        kept.append(name)
    return tuple(kept)
