"""Host names, /etc/hosts and resolv.conf (lifecycle 7.5)."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import msgspec
import pytest

from services.podworker.core.dns import (
    falls_back_to_default_dns,
    parse_resolv_conf,
    pod_dns,
    pod_hostname,
)
from services.podworker.core.hosts_file import host_network_hosts_file, hosts_file
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


def test_the_hosts_file_is_the_kubelets() -> None:
    assert hosts_file(["172.17.0.2", "fd00::2"], "web") == (
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
    assert hosts_file(["172.17.0.2"], "h", "s.default.svc.x").endswith("172.17.0.2\th.s.default.svc.x\th\n")


def test_a_host_network_pod_has_the_nodes_file_under_a_header() -> None:
    assert host_network_hosts_file("127.0.0.1 x\n") == (
        "# Kubernetes-managed hosts file (host network).\n127.0.0.1 x\n"
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
