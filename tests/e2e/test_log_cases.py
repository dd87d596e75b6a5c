"""containerLogs of real containers, by the cases' numbers, and /pods with a static pod."""

from __future__ import annotations

import http.client
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node
from tests.support.small_pods import WAIT, apply, container

pytestmark = [pytest.mark.nats, pytest.mark.docker, pytest.mark.e2e]

NUMBERS = "i=1; while [ $i -le 20 ]; do echo line $i; i=$((i+1)); done"

LONG = "head -c 20000 /dev/zero | tr '\\0' y; echo"
"""A line that the engine keeps in two parts. kubelet: tailLines counts both; it comes as one line with one time."""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        one = Node(Path(directory))
        try:
            one.start()
            apply(one, "p1", container(f"{NUMBERS}; {LONG}; {WAIT}", "c1"))
            until_go = "while [ ! -e /tmp/go ]; do sleep 0.1; done"
            apply(one, "late", container(f"echo begun; {until_go}; echo late", "c1"), restartPolicy="Never")
            apply(one, "again", container("echo ran; exit 3", "c1"), restartPolicy="OnFailure")
            eventually(lambda: set(one.pods()) >= {"p1", "late", "again"}, within=60)
            yield one
        finally:
            one.close()


def _log(node: Node, pod: str, query: str = "") -> bytes:
    status, body = node.get(f"/containerLogs/default/{pod}-n1/c1?{query}")
    assert status == 200, body
    return body


def _has_written(node: Node, pod: str, text: bytes) -> None:
    eventually(lambda: text in node.get(f"/containerLogs/default/{pod}-n1/c1")[1], within=30)


def test_c02_the_last_lines_with_their_times_for_a_client_certificate(node: Node) -> None:
    _has_written(node, "p1", b"y\n")
    pki = node.data / "pki"
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    link = http.client.HTTPSConnection("127.0.0.1", node.port, timeout=20, context=context)
    link.request("GET", "/containerLogs/default/p1-n1/c1?tailLines=5&timestamps=true")
    answer = link.getresponse()
    lines = answer.read().decode().splitlines()
    link.close()
    assert (answer.status, answer.getheader("Transfer-Encoding"), answer.getheader("Content-Type")) == (
        200,
        "chunked",
        None,
    )
    assert [re.sub(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ", "", line) for line in lines] == [
        *(f"line {number}" for number in range(18, 21)),
        "y" * 20000,
    ]


def test_c03_a_followed_log_shows_lines_as_they_come_and_ends_with_the_container(node: Node) -> None:
    _has_written(node, "late", b"begun\n")
    context = ssl.create_default_context(cafile=str(node.data / "pki" / "ca.crt"))
    link = http.client.HTTPSConnection("127.0.0.1", node.port, timeout=20, context=context)
    link.request(
        "GET", "/containerLogs/default/late-n1/c1?follow=true", headers={"Authorization": f"Bearer {node.token}"}
    )
    answer = link.getresponse()
    assert answer.readline() == b"begun\n"
    assert node.get("/run/default/late-n1/c1?cmd=touch%20/tmp/go", method="POST")[0] == 200
    assert answer.readline() == b"late\n"
    assert answer.read() == b""  # after the exit, with the last chunk
    link.close()


def test_c16_a_static_pod_has_its_nodes_name_and_its_source(node: Node) -> None:
    pod = node.pod("p1")
    assert pod["metadata"]["name"] == "p1-n1"
    assert pod["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"
    assert pod["status"]["phase"] in ("Pending", "Running")


def test_c29_a_limit_of_bytes_cuts_anywhere(node: Node) -> None:
    _has_written(node, "p1", b"line 20\n")
    assert _log(node, "p1", "limitBytes=10") == b"line 1\nlin"
    assert len(_log(node, "p1", "limitBytes=10&timestamps=true")) == 10
    assert _log(node, "p1", "tailLines=0") == b""


def test_a_time_leaves_older_lines_out(node: Node) -> None:
    _has_written(node, "p1", b"line 20\n")
    assert _log(node, "p1", "sinceTime=2020-01-01T00:00:00Z").startswith(b"line 1\n")
    assert _log(node, "p1", "sinceTime=2100-01-01T00:00:00Z") == b""


def test_the_run_before_is_shown_when_it_is_asked_for(node: Node) -> None:
    def both_runs() -> bool:
        status = node.pod("again")["status"]["containerStatuses"][0]
        return bool(status["restartCount"] >= 1 and "terminated" in status["lastState"])

    eventually(both_runs, within=60)
    assert _log(node, "again", "previous=true") == b"ran\n"
