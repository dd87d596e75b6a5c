"""Why a node turns a pod down, in the kubelet's words and order."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from services.podworker.core.admission import Demand, NodeLimits, NodeTraits, Usage, judge
from services.podworker.core.demand import demand_of
from services.podworker.core.model import Rejection
from services.podworker.core.sysctls import normal_sysctl, refused_sysctl
from shared.kube.node_labels import node_labels
from shared.kube.pod import Pod, decode_pod

NODE = NodeTraits(name="n1", labels=node_labels("n1", "amd64") | {"cores": "8"}, kernel=(6, 1))
LIMITS = NodeLimits(cpu_milli=2000, memory_bytes=1 << 30, pods=10, traits=NODE)

EMPTY = Usage()


def pod(**spec: Any) -> Pod:
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}], **spec}}
    return decode_pod(msgspec.json.encode(body))


def verdict(given: Pod, *, source: str = "file", usage: Usage = EMPTY, node: NodeTraits = NODE) -> Rejection | None:
    return judge(demand_of(given, node), LIMITS, usage, source)


def reason(given: Pod, *, source: str = "file", usage: Usage = EMPTY, node: NodeTraits = NODE) -> str:
    found = verdict(given, source=source, usage=usage, node=node)
    return "" if found is None else found.reason


def sysctls(*names: str, **more: Any) -> Pod:
    return pod(securityContext={"sysctls": [{"name": name, "value": "1"} for name in names]}, **more)


def expressions(*requirements: dict[str, Any]) -> dict[str, Any]:
    return affinity({"matchExpressions": list(requirements)})


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


# -- sysctls ------------------------------------------------------------------------------------------------------


def test_a_sysctl_off_the_list_is_forbidden_by_name() -> None:
    """golden a31; "not whitelisted" in 1.20."""
    found = verdict(sysctls("net.ipv4.tcp_syncookies", "kernel.msgmax"))
    assert found == Rejection(reason="SysctlForbidden", message='forbidden sysctl: "kernel.msgmax" not allowlisted')


@pytest.mark.parametrize(
    "name",
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        "net/ipv4/tcp_syncookies",
    ],
)
def test_a_safe_sysctl_is_allowed(name: str) -> None:
    assert reason(sysctls(name)) == ""


def test_what_an_old_kernel_shares_with_the_node_is_not_safe() -> None:
    assert refused_sysctl(["net.ipv4.tcp_rmem"], (4, 14), ()) == "net.ipv4.tcp_rmem"
    assert refused_sysctl(["net.ipv4.tcp_rmem"], (4, 15), ()) == ""


def test_unsafe_sysctls_may_be_allowed_by_name_or_beginning() -> None:
    node = msgspec.structs.replace(NODE, allowed_unsafe_sysctls=("kernel.msg*", "net.core.somaxconn"))
    assert reason(sysctls("kernel.msgmax", "net.core.somaxconn"), node=node) == ""
    assert reason(sysctls("kernel.sem"), node=node) == "SysctlForbidden"
    assert reason(sysctls("net.core.somaxconn2"), node=node) == "SysctlForbidden"


def test_a_pod_on_the_nodes_network_may_not_set_its_parameters() -> None:
    found = verdict(sysctls("net.ipv4.tcp_syncookies", hostNetwork=True))
    assert found is not None and found.message.endswith("not allowed with host net enabled")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("kernel.shm_rmid_forced", "kernel.shm_rmid_forced"),
        ("net/ipv4/tcp_rmem", "net.ipv4.tcp_rmem"),
        ("net/ipv4/conf/eth0.1/rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
        ("net.ipv4.conf.eth0/1.rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
        ("plain", "plain"),
    ],
)
def test_a_sysctl_may_be_written_with_slashes(written: str, meant: str) -> None:
    assert normal_sysctl(written) == meant


# -- the node -----------------------------------------------------------------------------------------------------


def test_a_pod_of_another_system_is_not_supported() -> None:
    found = verdict(pod(os={"name": "windows"}))
    assert found is not None
    assert (found.reason, found.message) == (
        "PodOSNotSupported",
        "Failed to admit pod as the OS field doesn't match node OS",
    )
    assert reason(pod(os={"name": "linux"})) == ""


def test_a_selector_of_another_node_is_told_as_affinity() -> None:
    found = verdict(pod(nodeSelector={"kubernetes.io/hostname": "n2"}))
    assert found is not None and found.reason == "NodeAffinity"
    assert found.message == "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    assert reason(pod(nodeSelector={"kubernetes.io/hostname": "n1", "kubernetes.io/os": "linux"})) == ""


@pytest.mark.parametrize(
    ("requirement", "fits"),
    [
        ({"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64", "amd64"]}, True),
        ({"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}, False),
        ({"key": "kubernetes.io/arch", "operator": "NotIn", "values": ["arm64"]}, True),
        ({"key": "disk", "operator": "NotIn", "values": ["ssd"]}, True),
        ({"key": "disk", "operator": "In", "values": ["ssd"]}, False),
        ({"key": "kubernetes.io/os", "operator": "Exists"}, True),
        ({"key": "disk", "operator": "Exists"}, False),
        ({"key": "disk", "operator": "DoesNotExist"}, True),
        ({"key": "cores", "operator": "Gt", "values": ["7"]}, True),
        ({"key": "cores", "operator": "Gt", "values": ["8"]}, False),
        ({"key": "cores", "operator": "Lt", "values": ["9"]}, True),
        ({"key": "disk", "operator": "Gt", "values": ["1"]}, False),
        ({"key": "kubernetes.io/os", "operator": "Gt", "values": ["1"]}, False),
    ],
)
def test_an_expression_is_asked_of_the_nodes_labels(requirement: dict[str, Any], fits: bool) -> None:
    assert reason(pod(**expressions(requirement))) == ("" if fits else "NodeAffinity")


def test_one_matching_term_is_enough_and_an_empty_one_matches_nothing() -> None:
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    there = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
    assert reason(pod(**affinity(there, here))) == ""
    assert reason(pod(**affinity(there))) == "NodeAffinity"
    assert reason(pod(**affinity({}))) == "NodeAffinity"


def test_all_expressions_of_a_term_have_to_hold() -> None:
    linux = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
    ssd = {"key": "disk", "operator": "Exists"}
    assert reason(pod(**expressions(linux, ssd))) == "NodeAffinity"


# -- order --------------------------------------------------------------------------------------------------------

BIG = {
    "containers": [
        {"name": "c", "resources": {"requests": {"cpu": "64"}}, "ports": [{"containerPort": 1, "hostPort": 80}]}
    ]
}
TAKEN = Usage(pods=1, host_ports={("TCP", "", 80): "default/holder"})


def test_a_static_pod_that_lacks_more_than_room_says_the_other() -> None:
    """Room might be made by preemption; a port or another node's label couldn't."""
    elsewhere = {"nodeSelector": {"disk": "ssd"}}
    assert reason(pod(**BIG, **elsewhere), usage=TAKEN) == "NodeAffinity"
    assert reason(pod(**BIG), usage=TAKEN) == "NodePorts"
    assert reason(pod(**BIG)) == "UnexpectedAdmissionError"


def test_a_pod_of_the_api_says_the_room_first() -> None:
    assert reason(pod(**BIG, nodeSelector={"disk": "ssd"}), usage=TAKEN, source="api") == "OutOfcpu"


def test_a_forbidden_sysctl_comes_before_all() -> None:
    forbidden = {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}
    assert reason(pod(**BIG, **forbidden, os={"name": "windows"}), usage=TAKEN) == "SysctlForbidden"


def test_a_taken_port_is_told_with_who_has_it() -> None:
    """Acceptance case 13."""
    found = verdict(pod(containers=[{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}]}]), usage=TAKEN)
    assert found is not None
    assert found.message.endswith("requested pod ports: 80/TCP is taken by default/holder")


def test_one_pod_too_many_says_so() -> None:
    full = Usage(pods=10)
    demand = Demand(cpu_milli=0, memory_bytes=0, host_ports=())
    static, api = judge(demand, LIMITS, full, "file"), judge(demand, LIMITS, full, "api")
    assert static is not None and static.message.endswith("[(res: pods, q: 1), ]")
    assert api is not None and (api.reason, api.message) == (
        "OutOfpods",
        "Node didn't have enough resource: pods, requested: 1, used: 10, capacity: 10",
    )
