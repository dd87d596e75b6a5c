"""What a probe asks, and what is made of its answer (lifecycle 5: handlers)."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.core.events_probe import BURST, MAX_TEXT, EventAllowance, probe_event, spend
from services.podworker.core.probe_checks import (
    Check,
    ExecCheck,
    GrpcCheck,
    HttpCheck,
    NoCheck,
    TcpCheck,
    check_of,
)
from services.podworker.core.probe_outcomes import (
    SUCCESS,
    Result,
    error,
    exec_result,
    failure,
    grpc_result,
    http_result,
    too_late,
    unreachable,
)
from tests.support.builders import POD_IP, a_container, a_pod


def asked(probe: dict[str, Any], address: str = POD_IP, **container: Any) -> Check:
    (made,) = a_pod(a_container(readinessProbe=probe, **container)).spec.containers
    assert made.readiness_probe is not None
    return check_of(made.readiness_probe, made, address)


def http(**fields: Any) -> HttpCheck:
    check = asked({"httpGet": {"port": 8080, **fields}}, ports=[{"name": "web", "containerPort": 8081}])
    assert isinstance(check, HttpCheck)
    return check


# -- what is asked


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({}, f"http://{POD_IP}:8080/"),
        ({"path": "/ready?deep=1"}, f"http://{POD_IP}:8080/ready?deep=1"),
        ({"path": "ready"}, f"http://{POD_IP}:8080/ready"),
        ({"scheme": "HTTPS"}, f"https://{POD_IP}:8080/"),
        ({"host": "shop.example"}, "http://shop.example:8080/"),
        ({"host": "fd00::1"}, "http://[fd00::1]:8080/"),
        ({"port": "web"}, f"http://{POD_IP}:8081/"),
        ({"port": "80"}, f"http://{POD_IP}:80/"),
    ],
)
def test_an_http_probe_goes_to_its_url(fields: dict[str, Any], url: str) -> None:
    """P06"""
    assert http(**fields).url == url


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ([], {"User-Agent": "kube-probe/1.36", "Accept": "*/*"}),
        ([("X-A", "1")], {"X-A": "1", "User-Agent": "kube-probe/1.36", "Accept": "*/*"}),
        ([("accept", "text/html")], {"accept": "text/html", "User-Agent": "kube-probe/1.36"}),
        ([("Accept", "")], {"User-Agent": "kube-probe/1.36"}),
        ([("user-agent", "")], {"Accept": "*/*"}),
        ([("Host", "shop.example")], {"Host": "shop.example", "User-Agent": "kube-probe/1.36", "Accept": "*/*"}),
    ],
)
def test_headers_are_the_given_ones_and_two_of_the_kubelets(given: list[tuple[str, str]], sent: dict[str, str]) -> None:
    """P06"""
    assert dict(http(httpHeaders=[{"name": n, "value": v} for n, v in given]).headers) == sent


def test_a_tcp_probe_goes_to_its_host_or_the_pods() -> None:
    assert asked({"tcpSocket": {"port": 81}}) == TcpCheck(host=POD_IP, port=81)
    assert asked({"tcpSocket": {"port": 81, "host": "db.example"}}) == TcpCheck(host="db.example", port=81)


def test_a_grpc_probe_names_its_service() -> None:
    assert asked({"grpc": {"port": 50051, "service": "shop"}}) == GrpcCheck(host=POD_IP, port=50051, service="shop")


def test_a_command_sees_literal_values_only() -> None:
    """P16"""
    env = [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    check = asked({"exec": {"command": ["echo", "$(A)", "$(B)", "$$(A)"]}}, env=env)
    assert check == ExecCheck(command=("echo", "1", "$(B)", "$(A)"))


@pytest.mark.parametrize(
    ("probe", "address", "why"),
    [
        ({"tcpSocket": {"port": "nope"}}, POD_IP, 'strconv.Atoi: parsing "nope": invalid syntax'),
        ({"tcpSocket": {"port": "70000"}}, POD_IP, "invalid port number: 70000"),
        ({"tcpSocket": {"port": 80}}, "", "the pod has no address yet"),
        ({"httpGet": {"port": 80}}, "", "the pod has no address yet"),
        ({"grpc": {"port": 80}}, "", "the pod has no address yet"),
        ({}, POD_IP, "missing probe handler"),
    ],
)
def test_what_cannot_be_asked_is_an_error(probe: dict[str, Any], address: str, why: str) -> None:
    assert asked(probe, address) == NoCheck(error=why)


# -- what is made of the answer


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, "success"),
        (299, "success"),
        (302, "warning"),
        (399, "warning"),
        (400, "failure"),
        (500, "failure"),
        (199, "failure"),
    ],
)
def test_two_and_three_hundreds_are_good(status: int, kind: str) -> None:
    """P04"""
    assert http_result(status, b"").kind == kind


def test_the_body_is_told_with_a_redirect_and_not_with_a_failure() -> None:
    assert http_result(302, b"over there").text == "Probe terminated redirects, Response body: over there"
    assert http_result(500, b"secret").text == "HTTP probe failed with statuscode: 500"


def test_an_exit_code_of_zero_is_good_and_output_tells_why_not() -> None:
    assert exec_result(["x"], 0, b"noise", 1) == SUCCESS
    assert exec_result(["x"], 2, b"why\n\xff", 1) == failure("why\n\N{REPLACEMENT CHARACTER}")


def test_a_command_that_does_not_end_has_failed() -> None:
    """P03"""
    assert exec_result(["sleep", "10"], None, b"", 1) == failure('command timed out: "sleep 10" timed out after 1s')


def test_only_serving_is_healthy() -> None:
    assert grpc_result("SERVING") == SUCCESS
    assert grpc_result("NOT_SERVING") == failure('service unhealthy (responded with "NOT_SERVING")')


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (TcpCheck(host="h", port=1), "dial tcp h:1: i/o timeout"),
        (GrpcCheck(host="h", port=1, service=""), "timeout: health rpc did not complete within 3s"),
        (
            HttpCheck(url="http://h:1/", headers=()),
            'Get "http://h:1/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
        ),
    ],
)
def test_what_comes_too_late_has_failed(check: Check, told: str) -> None:
    assert too_late(check, 3) == failure(told)


def test_an_http_failure_names_the_url() -> None:
    refused = "dial tcp h:1: connect: connection refused"
    assert unreachable(HttpCheck(url="http://h:1/", headers=()), refused) == failure(f'Get "http://h:1/": {refused}')
    assert unreachable(TcpCheck(host="h", port=1), refused) == failure(refused)


# -- events


@pytest.mark.parametrize(
    ("result", "reason", "message"),
    [
        (failure("why\n"), "Unhealthy", "Liveness probe failed: why\n"),
        (Result(kind="warning", text="hm"), "ProbeWarning", "Liveness probe warning: hm"),
        (error("oh"), "Unhealthy", "Liveness probe errored and resulted in unknown state: oh"),
    ],
)
def test_what_is_not_good_is_told_as_the_kubelet_does(result: Result, reason: str, message: str) -> None:
    event = probe_event("c", "liveness", result)
    assert event is not None
    assert (event.type, event.reason, event.message, event.container) == ("Warning", reason, message, "c")


def test_a_success_is_not_told() -> None:
    assert probe_event("c", "liveness", SUCCESS) is None


def test_a_long_text_is_cut() -> None:
    event = probe_event("c", "readiness", failure("x" * 5000))
    assert event is not None
    assert len(event.message) == MAX_TEXT and event.message.endswith("...")


def test_a_probe_that_fails_for_ever_is_told_more_and_more_seldom() -> None:
    """client-go: 25 of one object at once, then one each five minutes."""
    allowance, told = EventAllowance(), 0
    for second in range(3600):
        left = spend(allowance, float(second))
        if left is not None:
            allowance, told = left, told + 1
    assert told == BURST + 11
