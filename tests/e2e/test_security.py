"""What a pod may ask for of users, rights, namespaces, names and ports, seen from inside its containers: many small
pods side by side on one node."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node
from tests.support.secured_pods import PORT, UDP_PORT, give_pods
from tests.support.small_pods import (
    Json,
    container_id,
    events,
    ready,
    run_in,
    uid_of,
    waiting,
)

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

CLUSTER_DNS = "192.0.2.53"
NO_MKDIR = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}],
}
ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 53))
print("up", flush=True)
data, peer = s.recvfrom(99)
s.sendto(data.upper(), peer)
"""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory), config=f"clusterDNS: [{CLUSTER_DNS}]\nclusterDomain: cluster.test\n")
        try:
            profiles = made.data / "seccomp" / "profiles"
            profiles.mkdir(parents=True)
            (profiles / "no-mkdir.json").write_text(json.dumps(NO_MKDIR))
            give_pods(made)
            made.start()
            yield made
        finally:
            made.close()


def running(node: Node, pod: str, *names: str) -> None:
    """Wait for these containers of a pod."""

    def check() -> bool:
        statuses = node.pod(pod)["status"].get("containerStatuses", [])
        states = {one["name"]: one["state"] for one in statuses}
        assert all("running" in states.get(name, {}) for name in names), states
        return True

    eventually(check, within=60)


def process_status(node: Node, name: str, field: str) -> str:
    """Of a container's first process in pod "rights"."""
    running(node, "rights", name)
    (found,) = re.findall(rf"^{field}:\s*(\S+)", run_in(node, "rights", "cat /proc/1/status", name), re.M)
    return str(found)


# -- users, rights ------------------------------------------------------------------------------------------------


def test_a_container_runs_as_the_pods_user_and_groups_or_its_own(node: Node) -> None:
    """N03"""
    ready(node, "ids")
    assert re.match(r"uid=1000\S* gid=3000\S* groups=\S+", run_in(node, "ids", "id", "pods"))
    assert run_in(node, "ids", "id -G", "pods").split() == ["3000", "2000", "4000"]
    assert run_in(node, "ids", "id -u; id -G", "own").split() == ["2000", "0", "2000", "4000"]


def test_a_read_only_root_leaves_the_termination_message_writable(node: Node) -> None:
    """N06, also for a user who is not root."""
    ready(node, "ids")
    assert "Read-only" in run_in(node, "ids", "touch /tmp/x 2>&1 || true", "readonly")
    run_in(node, "ids", "echo done > /dev/termination-log", "readonly")
    assert "127.0.0.1" in run_in(node, "ids", "cat /etc/hosts", "readonly")


def test_a_terminal_and_a_directory_are_given(node: Node) -> None:
    ready(node, "ids")
    (found,) = json.loads(node.docker("inspect", container_id(node, "ids", "pods")))
    config = found["Config"]
    assert (config["Tty"], config["OpenStdin"], config["StdinOnce"]) == (True, True, False)
    assert run_in(node, "ids", "pwd", "pods") == "/var\n"


def test_capabilities_are_those_that_were_added_and_not_dropped(node: Node) -> None:
    """N04"""
    assert int(process_status(node, "few", "CapEff"), 16) == 1 << 12


def test_escalation_is_possible_unless_it_is_forbidden(node: Node) -> None:
    """N04"""
    assert process_status(node, "none", "NoNewPrivs") == "1"
    assert process_status(node, "few", "NoNewPrivs") == "0"


def test_system_calls_are_filtered_as_the_profile_says(node: Node) -> None:
    assert process_status(node, "few", "Seccomp") == "0"
    assert process_status(node, "default", "Seccomp") == "2"
    assert process_status(node, "local", "Seccomp") == "2"
    assert "not permitted" in run_in(node, "rights", "mkdir /tmp/x 2>&1 || true", "local")
    assert run_in(node, "rights", "mkdir /tmp/x", "default") == ""


def test_a_profile_that_is_not_there_is_told_and_taken_once_it_is(node: Node) -> None:
    running(node, "rights", "few", "none", "default", "local")
    file = node.data / "seccomp" / "none.json"

    def told() -> bool:
        (state,) = [c["state"] for c in node.pod("rights")["status"]["containerStatuses"] if c["name"] == "lost"]
        reason, message = state["waiting"]["reason"], state["waiting"]["message"]
        assert (reason, message) == (
            "CreateContainerError",
            f'cannot load seccomp profile "{file}": No such file or directory',
        )
        return True

    eventually(told, within=30)
    file.write_text(json.dumps(NO_MKDIR))
    running(node, "rights", "lost")


def test_a_sysctl_is_the_pods_own(node: Node) -> None:
    """N07"""
    ready(node, "sysctl")
    assert run_in(node, "sysctl", "cat /proc/sys/net/ipv4/ping_group_range").split() == ["5", "9"]


def test_a_strict_policy_of_groups_is_turned_down(node: Node) -> None:
    status = eventually(lambda: rejected(node, "strict"), within=30)
    assert status["reason"] == "SupplementalGroupsPolicyNotSupported"
    assert status["message"] == "Pod was rejected: SupplementalGroupsPolicy=Strict is not supported in this node"


def test_app_armor_is_enforced_or_the_pod_turned_down(node: Node) -> None:
    """Where the kernel has none."""
    if Path("/sys/kernel/security/apparmor").exists():
        ready(node, "armoured")
        return
    status = eventually(lambda: rejected(node, "armoured"), within=30)
    assert status["reason"] == "AppArmor"
    assert status["message"] == "Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host"


def rejected(node: Node, pod: str) -> Json | None:
    status: Json = node.pod(pod)["status"]
    return status if status.get("phase") == "Failed" else None


# -- namespaces ---------------------------------------------------------------------------------------------------


def test_the_hosts_namespaces_are_the_hosts(node: Node) -> None:
    """N09"""
    ready(node, "hosts")
    kinds = ("pid", "ipc", "net", "uts")
    inside = run_in(node, "hosts", "; ".join(f"readlink /proc/self/ns/{kind}" for kind in kinds)).split()
    assert inside == [os.readlink(f"/proc/self/ns/{kind}") for kind in kinds]
    assert run_in(node, "hosts", "hostname") == socket.gethostname() + "\n"
    status = node.pod("hosts")["status"]
    assert status["podIP"] == status["hostIP"]


def test_a_pod_on_the_hosts_network_has_the_nodes_hosts_file_and_its_aliases(node: Node) -> None:
    """N11"""
    ready(node, "hosts")
    expected = "# Kubernetes-managed hosts file (host network).\n" + Path("/etc/hosts").read_text()
    assert run_in(node, "hosts", "cat /etc/hosts") == expected + BLOCK


BLOCK = "\n# Entries added by HostAliases.\n192.0.2.9\tfoo.local\tbar.local\n"


def test_processes_of_a_pod_see_each_other_when_they_share_and_the_sandbox_is_the_first(node: Node) -> None:
    ready(node, "shared")
    assert run_in(node, "shared", "cat /proc/1/comm", "a") == "pause\n"
    ids = run_in(node, "shared", "ps -o pid,comm | grep -c sleep", "a")
    assert int(ids) >= 2
    of_both = [run_in(node, "shared", "readlink /proc/self/ns/pid", name) for name in ("a", "b")]
    assert of_both[0] == of_both[1] != os.readlink("/proc/self/ns/pid") + "\n"


# -- names --------------------------------------------------------------------------------------------------------


def test_a_full_name_is_the_kernels_when_asked_for(node: Node) -> None:
    """N10"""
    ready(node, "fqdn")
    full = "h.s.default.svc.cluster.test"
    assert run_in(node, "fqdn", "hostname") == full + "\n"
    ip = node.pod("fqdn")["status"]["podIP"]
    assert f"{ip}\t{full}\th\n" in run_in(node, "fqdn", "cat /etc/hosts")


def test_too_long_a_full_name_keeps_the_pod_from_starting(node: Node) -> None:
    """N10"""
    told = eventually(lambda: events(node, "toolong", "FailedCreatePodSandBox"), within=30)
    assert told[0].startswith("Failed to create pod sandbox: failed to construct FQDN from pod hostname and cluster")
    assert waiting(node, "toolong")[0] == "ContainerCreating"


def test_an_override_is_the_whole_name(node: Node) -> None:
    ready(node, "override")
    assert run_in(node, "override", "hostname") == "other.example\n"
    ip = node.pod("override")["status"]["podIP"]
    assert run_in(node, "override", "cat /etc/hosts").endswith(f"{ip}\tother.example\n")


def test_a_long_pods_name_is_cut(node: Node) -> None:
    """N10"""
    ready(node, "n" * 70)
    assert run_in(node, "n" * 70, "hostname") == "n" * 63 + "\n"


def test_the_hosts_file_is_whole_again_after_a_restart(node: Node) -> None:
    """N11"""
    ready(node, "aliases")
    ip = node.pod("aliases")["status"]["podIP"]
    text = eventually(lambda: node.docker("logs", container_id(node, "aliases")), within=10)
    assert text.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
    assert text.endswith(f"{ip}\taliases-{node.name}\n" + BLOCK)


def test_a_mount_of_its_own_takes_the_place_of_the_hosts_file(node: Node) -> None:
    """N11"""
    ready(node, "ownhosts")
    assert run_in(node, "ownhosts", "cat /etc/hosts") == Path("/etc/hostname").read_text()


# -- DNS ----------------------------------------------------------------------------------------------------------

SEARCHES = "default.svc.cluster.test svc.cluster.test cluster.test"


def test_the_clusters_dns_comes_before_what_the_pod_adds_and_what_is_left_out_is_told(node: Node) -> None:
    """N12"""
    ready(node, "cluster")
    servers = f"{CLUSTER_DNS} 192.0.2.1 192.0.2.2"
    lines = run_in(node, "cluster", "cat /etc/resolv.conf").splitlines()
    assert lines[:3] == [f"nameserver {server}" for server in servers.split()]
    assert re.fullmatch(rf"search {SEARCHES}( \S+)* x", lines[3])
    assert lines[4:] == ["options ndots:2 rotate"]
    (told,) = events(node, "cluster", "DNSConfigForming")
    assert told.endswith(f"the applied nameserver line is: {servers}")


def test_a_pod_on_the_hosts_network_asks_the_cluster_only_when_it_says_so(node: Node) -> None:
    """N12"""
    ready(node, "hostsdns")
    ready(node, "hosts")
    assert run_in(node, "hostsdns", "head -n 1 /etc/resolv.conf") == f"nameserver {CLUSTER_DNS}\n"
    assert servers_in(run_in(node, "hosts", "cat /etc/resolv.conf")) == host_servers()


def test_the_default_policy_gives_the_hosts_servers(node: Node) -> None:
    """N12"""
    ready(node, "nodes")
    reachable = [server for server in host_servers() if not server.startswith("127.")]
    assert not reachable or servers_in(run_in(node, "nodes", "cat /etc/resolv.conf")) == reachable


def host_servers() -> list[str]:
    return servers_in(Path("/etc/resolv.conf").read_text())


def servers_in(text: str) -> list[str]:
    return re.findall(r"^nameserver (\S+)", text, re.M)


# -- ports --------------------------------------------------------------------------------------------------------


def test_a_host_port_answers_at_its_address_only(node: Node) -> None:
    """N13"""
    ready(node, "ports")
    socket.create_connection(("127.0.0.1", PORT), timeout=5).close()
    status = node.pod("ports")["status"]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((status["hostIP"], PORT), timeout=5)
    socket.create_connection((status["podIP"], 80), timeout=5).close()


def test_a_host_port_carries_datagrams(node: Node) -> None:
    """N13"""
    ready(node, "ports")
    pid = sandbox(node, "ports")["State"]["Pid"]
    command = ["nsenter", "-t", str(pid), "-n", sys.executable, "-c", ECHO]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as echo:
        assert echo.stdout is not None
        try:
            assert echo.stdout.readline() == "up\n"
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(5)
                client.sendto(b"hello", ("127.0.0.1", UDP_PORT))
                assert client.recv(99) == b"HELLO"
        finally:
            echo.kill()


def test_a_port_without_a_host_port_is_not_published(node: Node) -> None:
    """N13"""
    ready(node, "ports")
    published = sandbox(node, "ports")["HostConfig"]["PortBindings"]
    assert published == {
        "80/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(PORT)}],
        "53/udp": [{"HostIp": "", "HostPort": str(UDP_PORT)}],
    }


def sandbox(node: Node, pod: str) -> Json:
    label = f"label=io.kubernetes.pod.uid={uid_of(node, pod)}"
    kind = "label=io.kubernetes.docker.type=podsandbox"
    (found,) = json.loads(node.docker("inspect", *node.docker("ps", "-q", "--filter", label, "--filter", kind).split()))
    return dict(found)
