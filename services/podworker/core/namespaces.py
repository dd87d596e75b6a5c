"""Which namespaces of the kernel a pod's sandbox and containers live in (lifecycle 7.5)."""

from __future__ import annotations

import msgspec

from services.podworker.core.node_facts import NodeFacts
from shared.kube.pod import Pod


class Namespaces(msgspec.Struct, frozen=True, kw_only=True):
    """In the engine's words."""

    network: str
    """"default" (the engine's bridge), "host", the name of a network, or `container:<id>`."""
    ipc: str
    """"shareable", "host", or `container:<id>`."""
    pid: str = ""
    """"" = its own, "host", or `container:<id>`."""
    uts: str = ""
    """"" = with the network, or "host"."""


def sandbox_namespaces(pod: Pod, node: NodeFacts) -> Namespaces:
    spec = pod.spec
    return Namespaces(
        network="host" if spec.host_network else node.network or "default",
        ipc="host" if spec.host_ipc else "shareable",
        pid="host" if spec.host_pid else "",
        uts="host" if spec.host_network else "",
    )


def container_namespaces(pod: Pod, sandbox_id: str) -> Namespaces:
    """By way of the sandbox, the host's too: so its resolv.conf is theirs."""
    spec, of_sandbox = pod.spec, f"container:{sandbox_id}"
    shared_pid = of_sandbox if spec.share_process_namespace else ""
    return Namespaces(
        network=of_sandbox,
        ipc=of_sandbox,
        pid="host" if spec.host_pid else shared_pid,
        uts="host" if spec.host_network else "",
    )
