"""The HTTPS API as people ask it by hand: with curl."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

CHATTY = "for i in 1 2 3 4 5; do echo line $i; done; trap 'exit 0' TERM; sleep 3600 & wait"
BRIEF = "echo one; sleep 3; echo two"
LOGS = "/containerLogs/default/chatty-n1/main"


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            made.apply("chatty.yaml", sleeper("chatty", command=CHATTY, grace=1))
            eventually(lambda: made.ready_pods() == {"chatty"}, within=30)
            eventually(lambda: b"line 5" in made.get(LOGS)[1], within=30)
            yield made
        finally:
            made.close()


def curl(node: Node, path: str, *options: str, token: str | None = None) -> tuple[int, str]:
    """(status, body). `token` "" = no credentials. curl's own failures fail the test."""
    bearer = node.token if token is None else token
    who = ("-H", f"Authorization: Bearer {bearer}") if bearer else ()
    done = subprocess.run(
        [
            *("curl", "-sS", "--max-time", "60", "--cacert", str(node.data / "pki" / "ca.crt"), *who),
            *("-w", "\n%{http_code}", *options, f"https://127.0.0.1:{node.port}{path}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def test_health_and_pods_are_told_to_whoever_may_ask(node: Node) -> None:
    assert curl(node, "/healthz") == (200, "ok")
    status, body = curl(node, "/pods")
    assert (status, json.loads(body)["kind"]) == (200, "PodList")
    assert curl(node, "/pods", token="") == (401, "Unauthorized")
    assert curl(node, "/pods", token="wrong") == (401, "Unauthorized")


def test_a_certificate_is_as_good_as_a_token(node: Node) -> None:
    pki = node.data / "pki"
    options = ("--cert", str(pki / "admin.crt"), "--key", str(pki / "admin.key"))
    assert curl(node, "/pods", *options, token="")[0] == 200


def test_a_viewer_is_refused_what_changes_something(node: Node) -> None:
    viewer = node.podbus("token", "--user", "v", "--role", "view").stdout.strip()
    eventually(lambda: curl(node, "/pods", token=viewer)[0] == 200, within=30)
    status, body = curl(node, "/run/default/chatty-n1/main?cmd=id", "-X", "POST", token=viewer)
    assert status == 403
    assert body.startswith("Forbidden (user=v, verb=create, resource=nodes, subresource(s)=[proxy])")


def test_logs_are_cut_as_asked(node: Node) -> None:
    assert curl(node, f"{LOGS}?tailLines=2") == (200, "line 4\nline 5\n")
    assert curl(node, f"{LOGS}?limitBytes=9") == (200, "line 1\nli")
    assert curl(node, f"{LOGS}?tailLines=0") == (200, "")
    status, body = curl(node, f"{LOGS}?timestamps=true&tailLines=1")
    assert status == 200 and body.endswith("Z line 5\n") and body.startswith("20")
    assert curl(node, f"{LOGS}?tailLines=-1")[0] == 422
    assert curl(node, "/containerLogs/default/none/main")[0] == 404


def test_a_log_is_followed_to_its_containers_end(node: Node) -> None:
    node.apply("brief.yaml", sleeper("brief", command=BRIEF, grace=1, restartPolicy="Never"))
    path = "/containerLogs/default/brief-n1/main?follow=true"
    eventually(lambda: "running" in str(node.pod("brief")["status"].get("containerStatuses")), within=30)
    assert curl(node, path, "-N") == (200, "one\ntwo\n")


def test_a_command_is_run_by_one_request(node: Node) -> None:
    assert curl(node, "/run/default/chatty-n1/main", "--data-urlencode", "cmd=echo hello") == (200, "hello\n")
    assert curl(node, "/run/default/chatty-n1/main", "-X", "GET")[0] == 405


def test_paths_are_found_as_the_kubelet_finds_them(node: Node) -> None:
    assert curl(node, "/nothing") == (404, "404 page not found\n")
    assert curl(node, "/runningpods")[0] in (301, 307)
    status, body = curl(node, "/runningpods", "-L")
    assert (status, json.loads(body)["kind"]) == (200, "PodList")
    assert curl(node, "//pods", "--path-as-is")[0] == 301


def test_a_page_comes_packed_when_curl_takes_it(node: Node) -> None:
    status, body = curl(node, "/metrics/cadvisor", "--compressed")
    assert status == 200 and "# TYPE container_cpu_usage_seconds_total counter" in body
