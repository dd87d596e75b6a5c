"""Who is let in at a whole node: nobody without credentials, viewers only to look; the keys are the owner's."""

from __future__ import annotations

import http.client
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

UPGRADES = {
    "POST": {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"},
    "GET": {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
    },
}
STREAMING = ["/exec/default/a-n1/main?command=id&output=1", "/attach/default/a-n1/main?output=1"]
STREAMING += ["/portForward/default/a-n1?port=80"]
VIEWED = ["/pods", "/runningpods/", "/healthz", "/stats/summary", "/podbus", "/podbus/sources", "/podbus/events"]
VIEWED += ["/containerLogs/default/a-n1/main"]


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """One for all: with a running pod, so that there would be something to enter."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            made.apply("a.yaml", sleeper("a", grace=1))
            eventually(lambda: made.ready_pods() == {"a"}, within=15)
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module")
def viewer(node: Node) -> str:
    """A token of the role view; a node knows it within seconds of its making."""
    made = node.podbus("token", "--user", "v", "--role", "view")
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    eventually(lambda: node.get("/pods", token=token)[0] == 200, within=15)
    return token


def status_of(node: Node, method: str, path: str, token: str, headers: dict[str, str]) -> int:
    context = ssl.create_default_context(cafile=str(node.data / "pki" / "ca.crt"))
    link = http.client.HTTPSConnection("127.0.0.1", node.port, timeout=10, context=context)
    try:
        link.request(method, path, headers={**headers, **({"Authorization": f"Bearer {token}"} if token else {})})
        return link.getresponse().status
    finally:
        link.close()


@pytest.mark.parametrize("path", [*VIEWED, *STREAMING])
def test_without_credentials_nothing_answers(node: Node, path: str) -> None:
    assert node.get(path, token="")[0] == 401


@pytest.mark.parametrize("path", VIEWED)
def test_a_viewer_may_look(node: Node, viewer: str, path: str) -> None:
    assert node.get(path, token=viewer)[0] == 200


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("path", STREAMING)
def test_a_viewer_may_not_enter(node: Node, viewer: str, path: str, method: str) -> None:
    headers = dict(UPGRADES[method])
    if method == "POST" and path.startswith("/portForward"):
        headers["X-Stream-Protocol-Version"] = "portforward.k8s.io"
    assert status_of(node, method, path, viewer, headers) == 403
    assert status_of(node, method, path, "", headers) == 401
    # the admin gets in
    assert status_of(node, method, path, node.token, headers) == 101


def test_the_keys_are_only_their_owners(node: Node) -> None:
    """The directory, too: nobody else even lists it."""
    pki = node.data / "pki"
    files = [path for path in pki.rglob("*") if path.is_file()]
    assert {"ca.key", "tokens.csv", "admin.kubeconfig"} <= {path.name for path in files}
    assert {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in files} == dict.fromkeys(
        (path.name for path in files), "0o600"
    )
    assert stat.S_IMODE((node.data / "run").stat().st_mode) == 0o700
