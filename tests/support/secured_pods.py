"""The pods of tests/e2e/test_security.py: one for each thing that is looked at from inside its containers."""

from __future__ import annotations

from tests.support.nats_server import free_port
from tests.support.node import Node
from tests.support.small_pods import WAIT, Json, apply, container, mount

PORT, UDP_PORT = free_port(), free_port()
ALIASES = [{"ip": "192.0.2.9", "hostnames": ["foo.local", "bar.local"]}]


def secured(name: str, **context: object) -> Json:
    return container(WAIT, name, securityContext=context)


def give_pods(node: Node) -> None:
    """All at once: they start side by side."""
    volume = [{"name": "v", "emptyDir": {}}]
    apply(
        node,
        "ids",
        container(WAIT, "pods", workingDir="/var", stdin=True, tty=True),
        secured("own", runAsUser=2000, runAsGroup=0),
        secured("readonly", readOnlyRootFilesystem=True),
        securityContext={"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [4000]},
    )
    apply(
        node,
        "rights",
        secured("few", capabilities={"add": ["CAP_NET_ADMIN"], "drop": ["ALL"]}),
        secured("none", allowPrivilegeEscalation=False),
        secured("default", seccompProfile={"type": "RuntimeDefault"}),
        secured("local", seccompProfile={"type": "Localhost", "localhostProfile": "profiles/no-mkdir.json"}),
        secured("lost", seccompProfile={"type": "Localhost", "localhostProfile": "none.json"}),
    )
    apply(
        node,
        "sysctl",
        container(WAIT),
        securityContext={"sysctls": [{"name": "net/ipv4/ping_group_range", "value": "5 9"}]},
    )
    apply(node, "strict", container(WAIT), securityContext={"supplementalGroupsPolicy": "Strict"})
    apply(node, "armoured", secured("c", appArmorProfile={"type": "RuntimeDefault"}))
    apply(node, "hosts", container(WAIT), hostNetwork=True, hostPID=True, hostIPC=True, hostAliases=ALIASES)
    apply(node, "hostsdns", container(WAIT), hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")
    apply(node, "shared", container(WAIT, "a"), container(WAIT, "b"), shareProcessNamespace=True)
    apply(node, "fqdn", container(WAIT), hostname="h", subdomain="s", setHostnameAsFQDN=True)
    apply(node, "toolong", container(WAIT), hostname="h" * 40, subdomain="s", setHostnameAsFQDN=True)
    apply(node, "override", container(WAIT), hostname="h", subdomain="s", hostnameOverride="other.example")
    apply(node, "n" * 70, container(WAIT))
    apply(
        node,
        "aliases",
        container(
            f"if [ -e /v/again ]; then cat /etc/hosts; {WAIT}; fi; touch /v/again; echo spoiled > /etc/hosts",
            volumeMounts=[mount("v", "/v")],
        ),
        hostAliases=ALIASES,
        volumes=volume,
    )
    apply(
        node,
        "ownhosts",
        container(WAIT, volumeMounts=[mount("h", "/etc/hosts")]),
        hostAliases=ALIASES,
        volumes=[{"name": "h", "hostPath": {"path": "/etc/hostname", "type": "File"}}],
    )
    many = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    options = [{"name": "ndots", "value": "2"}, {"name": "rotate"}]
    apply(node, "cluster", container(WAIT), dnsConfig={"nameservers": many, "searches": ["x"], "options": options})
    apply(node, "nodes", container(WAIT), dnsPolicy="Default")
    ports = [
        {"containerPort": 80, "hostPort": PORT, "hostIP": "127.0.0.1"},
        {"containerPort": 53, "hostPort": UDP_PORT, "protocol": "UDP"},
        {"containerPort": 8080},
    ]
    apply(node, "ports", container("httpd -p 80; " + WAIT, ports=ports))
