"""Host names, /etc/hosts and resolv.conf (lifecycle 7.5)."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import msgspec
import pytest

from services.podworker.core.dns import (
    dns_events,
    falls_back_to_default_dns,
    parse_resolv_conf,
    pod_dns,
    resolv_conf,
)
from services.podworker.core.host_names import hostname_fault, kernel_hostname, pod_domain, pod_hostname
from services.podworker.core.hosts_file import HostsFile, host_network_hosts_file, hosts_file, pod_hosts_file
from services.podworker.core.node_facts import DNSConfig, pod_log_directory
from shared.kube.pod import Pod
from tests.support.builders import a_node, a_pod


def named(name: str, **spec: Any) -> Pod:
    pod = a_pod(**spec)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=name))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (named("web-node1"), "web-node1"),
        (named("web", hostname="h"), "h"),
        (named("x" * 70), "x" * 63),
        (named("x" * 61 + "-.y"), "x" * 61),
        (named("web", hostNetwork=True), "node1"),
    ],
)
def test_the_host_name_is_given_or_the_pods_cut_to_63(pod: Pod, expected: str) -> None:
    assert pod_hostname(pod, a_node()) == expected


@pytest.mark.parametrize(
    ("spec", "name", "domain", "of_kernel"),
    [
        ({"hostname": "h"}, "h", "", "h"),
        ({"hostname": "h", "subdomain": "s"}, "h", "s.default.svc.x.y", "h"),
        ({"subdomain": "s"}, "p-node1", "s.default.svc.x.y", "p-node1"),
        (
            {"hostname": "h", "subdomain": "s", "setHostnameAsFQDN": True},
            "h",
            "s.default.svc.x.y",
            "h.s.default.svc.x.y",
        ),
        ({"hostname": "h", "setHostnameAsFQDN": True}, "h", "", "h"),
        ({"hostname": "h", "subdomain": "s", "hostnameOverride": "o.example"}, "o.example", "", "o.example"),
    ],
)
def test_a_subdomain_gives_a_full_name_and_an_override_takes_it(
    spec: dict[str, Any], name: str, domain: str, of_kernel: str
) -> None:
    """N10"""
    pod, node = a_pod(**spec), a_node(cluster_domain="x.y")
    assert (pod_hostname(pod, node), pod_domain(pod, node), kernel_hostname(pod, node)) == (name, domain, of_kernel)
    assert hostname_fault(pod, node) == ""


def test_a_full_name_beyond_what_the_kernel_holds_keeps_the_sandbox_from_starting() -> None:
    """N10; the kubelet's words."""
    spec: dict[str, Any] = {"hostname": "h" * 30, "subdomain": "s" * 30, "setHostnameAsFQDN": True}
    node = a_node(cluster_domain="c")
    name = f"{'h' * 30}.{'s' * 30}.default.svc.c"
    assert hostname_fault(a_pod(**spec), node) == (
        f"failed to construct FQDN from pod hostname and cluster domain, FQDN {name} is too long (64 characters is the "
        "max, 75 characters requested)"
    )
    assert hostname_fault(a_pod(**{**spec, "setHostnameAsFQDN": False}), node) == ""
    assert hostname_fault(a_pod(**spec, hostNetwork=True), node) == ""


def test_the_hosts_file_is_the_kubelets() -> None:
    assert hosts_file(["172.17.0.2", "fd00::2"], HostsFile(hostname="web")) == (
        "# Kubernetes-managed hosts file.\n"
        "127.0.0.1\tlocalhost\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\n"
        "fe00::0\tip6-localnet\n"
        "fe00::0\tip6-mcastprefix\n"
        "fe00::1\tip6-allnodes\n"
        "fe00::2\tip6-allrouters\n"
        "172.17.0.2\tweb\n"
        "fd00::2\tweb\n"
    )


def test_a_domain_gives_the_full_name_first() -> None:
    hosts = HostsFile(hostname="h", domain="s.default.svc.x")
    assert hosts_file(["172.17.0.2"], hosts).endswith("172.17.0.2\th.s.default.svc.x\th\n")


def test_host_aliases_are_a_block_of_their_own_a_line_per_address() -> None:
    """N11"""
    aliases = [{"ip": "1.2.3.4", "hostnames": ["foo.local", "bar.local"]}, {"ip": "::1", "hostnames": ["x"]}]
    block = "\n# Entries added by HostAliases.\n1.2.3.4\tfoo.local\tbar.local\n::1\tx\n"
    own = pod_hosts_file(a_pod(hostAliases=aliases), a_node())
    assert hosts_file(["172.17.0.2"], own).endswith("172.17.0.2\tp-node1\n" + block)
    nodes = pod_hosts_file(a_pod(hostAliases=aliases, hostNetwork=True), a_node())
    assert nodes.is_the_nodes
    assert host_network_hosts_file("127.0.0.1 x\n", nodes) == (
        "# Kubernetes-managed hosts file (host network).\n127.0.0.1 x\n" + block
    )


CLUSTER = {"cluster_dns": ("10.0.0.10",), "cluster_domain": "cluster.local"}


@pytest.mark.parametrize(
    ("spec", "uses_cluster"),
    [
        ({}, True),
        ({"dnsPolicy": "ClusterFirst", "hostNetwork": True}, False),
        ({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, True),
        ({"dnsPolicy": "Default"}, False),
    ],
)
def test_the_dns_policy_decides_whose_servers_are_asked(spec: dict[str, Any], uses_cluster: bool) -> None:
    dns = pod_dns(a_pod(**spec), a_node(**CLUSTER))
    assert bool(dns.servers) == uses_cluster


def test_cluster_dns_has_the_clusters_searches_before_the_hosts() -> None:
    node = a_node(**CLUSTER, host_dns=DNSConfig(("192.0.2.53",), ("example.com", "cluster.local"), ("ndots:1",)))
    assert pod_dns(a_pod(), node) == DNSConfig(
        ("10.0.0.10",),
        ("default.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.com"),
        ("ndots:5",),
    )


def test_without_a_cluster_dns_the_hosts_file_is_used_and_that_is_known() -> None:
    assert pod_dns(a_pod(), a_node()) == DNSConfig()
    assert falls_back_to_default_dns(a_pod(), a_node())
    assert not falls_back_to_default_dns(a_pod(dnsPolicy="Default"), a_node())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, DNSConfig()),
        ({"hostNetwork": True}, DNSConfig()),
        (
            {"dnsConfig": {"nameservers": ["192.0.2.53", "9.9.9.9"], "options": [{"name": "ndots", "value": "2"}]}},
            DNSConfig(("192.0.2.53", "9.9.9.9"), ("example.com",), ("ndots:2", "rotate")),
        ),
        (
            {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["9.9.9.9"], "searches": ["my.dns"]}},
            DNSConfig(("9.9.9.9",), ("my.dns",)),
        ),
    ],
)
def test_dns_config_adds_to_what_the_policy_gives(spec: dict[str, Any], expected: DNSConfig) -> None:
    """N12. With nothing added the engine's copy of the host's file stays."""
    node = a_node(host_dns=DNSConfig(("192.0.2.53",), ("example.com",), ("ndots:1", "rotate")))
    assert pod_dns(a_pod(**{"dnsPolicy": "Default", **spec}), node) == expected


def test_another_resolv_conf_than_the_engines_is_written_for_the_default_policy() -> None:
    other = DNSConfig(("192.0.2.53",), ("example.com",))
    node = a_node(host_dns=other, engine_copies_host_dns=False)
    assert pod_dns(a_pod(dnsPolicy="Default"), node) == other


def test_options_of_dns_config_replace_the_clusters_by_name() -> None:
    options = [{"name": "ndots", "value": "3"}, {"name": "edns0"}]
    assert pod_dns(a_pod(dnsConfig={"options": options}), a_node(**CLUSTER)).options == ("ndots:3", "edns0")


def test_what_a_resolv_conf_cannot_hold_is_left_out_and_told() -> None:
    config = {"nameservers": ["192.0.2.1", "192.0.2.2", "192.0.2.3"], "searches": ["a" * 254, "b"]}
    pod, node = a_pod(dnsConfig=config), a_node(**CLUSTER)
    assert pod_dns(pod, node).servers == ("10.0.0.10", "192.0.2.1", "192.0.2.2")
    searches = "default.svc.cluster.local svc.cluster.local cluster.local b"
    assert [(event.reason, event.message) for event in dns_events(pod, node)] == [
        (
            "DNSConfigForming",
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
            "10.0.0.10 192.0.2.1 192.0.2.2",
        ),
        (
            "DNSConfigForming",
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "
            + searches,
        ),
    ]
    assert not dns_events(a_pod(), node)


def test_a_resolv_conf_is_written_in_the_kubelets_order_and_reads_back() -> None:
    dns = DNSConfig(("9.9.9.9", "192.0.2.1"), ("my.dns", "x"), ("ndots:3", "edns0"))
    text = "nameserver 9.9.9.9\nnameserver 192.0.2.1\nsearch my.dns x\noptions ndots:3 edns0\n"
    assert resolv_conf(dns) == text
    assert parse_resolv_conf(text) == dns
    assert resolv_conf(DNSConfig(("9.9.9.9",))) == "nameserver 9.9.9.9\n"


def test_searches_beyond_a_resolv_confs_limits_are_dropped() -> None:
    many = tuple(f"{number:03}.example" for number in range(40))
    assert len(pod_dns(a_pod(), a_node(**CLUSTER, host_dns=DNSConfig(searches=many))).searches) == 32
    long = tuple(chr(97 + number) * 200 for number in range(20))
    searches = pod_dns(a_pod(), a_node(**CLUSTER, host_dns=DNSConfig(searches=long))).searches
    assert len(" ".join(searches)) <= 2048
    assert len(" ".join((*searches, long[-1]))) > 2048


def test_a_resolv_conf_is_read_as_the_resolver_does() -> None:
    text = (
        "# comment\nnameserver 192.0.2.1\nnameserver 192.0.2.2 ; why\nsearch a.\nsearch b.example. c\n"
        "options ndots:2 rotate\nsortlist x\nnameserver\n"
    )
    assert parse_resolv_conf(text) == DNSConfig(("192.0.2.1", "192.0.2.2"), ("b.example", "c"), ("ndots:2", "rotate"))


def test_a_log_directorys_name_is_cut_at_what_a_file_name_may_have_and_keeps_its_uid() -> None:
    directory = PurePosixPath(pod_log_directory(a_node(), "n" * 63, "p" * 253, "u" * 36))
    assert len(directory.name) == 255
    assert directory.name.startswith("n" * 63 + "_ppp") and directory.name.endswith("p_" + "u" * 36)
    assert PurePosixPath(pod_log_directory(a_node(), "ns", "p", "u")).name == "ns_p_u"
