"""What a pod's containers are told of services (lifecycle 7.2)."""

from __future__ import annotations

from typing import Any

from services.source.core.service_variables import service_variables


def a_service(name: str, namespace: str = "default", ip: str = "10.0.0.1", ports: Any = None) -> dict[str, Any]:
    given = [{"name": "https", "port": 443, "protocol": "TCP"}] if ports is None else ports
    return {"metadata": {"namespace": namespace, "name": name}, "spec": {"clusterIP": ip, "ports": given}}


def test_the_variables_of_a_service_are_docker_links_and_kubernetes_own() -> None:
    assert service_variables([a_service("kubernetes")], "shop", links=True) == {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
        "KUBERNETES_SERVICE_PORT_HTTPS": "443",
        "KUBERNETES_PORT": "tcp://10.0.0.1:443",
        "KUBERNETES_PORT_443_TCP": "tcp://10.0.0.1:443",
        "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
        "KUBERNETES_PORT_443_TCP_PORT": "443",
        "KUBERNETES_PORT_443_TCP_ADDR": "10.0.0.1",
    }


def test_a_service_of_the_pods_namespace_is_told_only_where_links_are_wanted() -> None:
    services = [a_service("my-db", "shop"), a_service("other", "away"), a_service("kubernetes")]
    with_links = service_variables(services, "shop", links=True)
    assert "MY_DB_SERVICE_HOST" in with_links and "OTHER_SERVICE_HOST" not in with_links
    without = service_variables(services, "shop", links=False)
    assert {name.split("_")[0] for name in without} == {"KUBERNETES"}


def test_a_service_named_kubernetes_in_the_pods_namespace_hides_the_clusters() -> None:
    services = [a_service("kubernetes", "shop", "10.9.9.9"), a_service("kubernetes")]
    for order in (services, services[::-1]):
        assert service_variables(order, "shop", links=True)["KUBERNETES_SERVICE_HOST"] == "10.9.9.9"


def test_a_service_without_an_address_or_a_port_is_not_told() -> None:
    services = [a_service("a", ip="None"), a_service("b", ip=""), a_service("c", ports=[])]
    assert service_variables(services, "default", links=True) == {}


def test_every_port_is_told_and_the_first_is_the_services() -> None:
    ports = [{"port": 80}, {"name": "dns-udp", "port": 53, "protocol": "UDP"}]
    found = service_variables([a_service("web", ports=ports)], "default", links=True)
    assert found["WEB_SERVICE_PORT"] == "80"
    assert found["WEB_SERVICE_PORT_DNS_UDP"] == "53"
    assert found["WEB_PORT"] == "tcp://10.0.0.1:80"
    assert found["WEB_PORT_53_UDP"] == "udp://10.0.0.1:53"


def test_an_address_of_the_sixth_version_stands_in_brackets_in_a_url() -> None:
    found = service_variables([a_service("web", ip="fd00::1", ports=[{"port": 80}])], "default", links=True)
    assert found["WEB_PORT"] == "tcp://[fd00::1]:80"
    assert found["WEB_PORT_80_TCP_ADDR"] == "fd00::1"
