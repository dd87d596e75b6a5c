"""A Secret beside its pod: in the container, and nowhere else that anybody but it can look."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from services.podworker.adapters.mounting import mounts_below
from shared.bus import BusUnavailable, Credentials, RemoteError, connect, load_credentials
from shared.contracts.configs import SecretQuery
from shared.contracts.registry import SECRET
from shared.contracts.subject import SERVICES
from shared.runtime.paths import DataPaths
from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, is_ready

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

CANARY = "c4n4ry-8e1f0b"
CASE_07 = f"""apiVersion: v1
kind: ConfigMap
metadata: {{name: greet}}
data: {{greeting: hello}}
---
apiVersion: v1
kind: Secret
metadata: {{name: greet-token}}
type: Opaque
stringData: {{token: {CANARY}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: greeter}}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: app
    image: busybox:1.36
    command: ["sh", "-c", "echo greeting=$GREETING token=$TOKEN file=$(cat /etc/greet/greeting); sleep 3600"]
    env:
    - name: GREETING
      valueFrom: {{configMapKeyRef: {{name: greet, key: greeting}}}}
    - name: TOKEN
      valueFrom: {{secretKeyRef: {{name: greet-token, key: token}}}}
    volumeMounts:
    - {{name: greet, mountPath: /etc/greet}}
    - {{name: token, mountPath: /token}}
    - {{name: all, mountPath: /all}}
  volumes:
  - name: greet
    configMap: {{name: greet}}
  - name: token
    secret: {{secretName: greet-token}}
  - name: all
    projected: {{sources: [{{secret: {{name: greet-token}}}}]}}
"""
SPELT_OUT = """apiVersion: v1
kind: Pod
metadata: {name: spelt-out}
spec:
  restartPolicy: Never
  containers:
  - name: app
    image: busybox:1.36
    command: ["/nowhere/$(TOKEN)"]
    env:
    - name: TOKEN
      valueFrom: {secretKeyRef: {name: greet-token, key: token}}
"""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            made.apply("07.yaml", CASE_07)
            made.apply("spelt-out.yaml", SPELT_OUT)
            eventually(lambda: is_ready(made.pod("greeter")), within=30)
            eventually(lambda: made.pod("spelt-out")["status"]["phase"] == "Failed", within=30)
            yield made
        finally:
            made.close()


def container(node: Node) -> str:
    return next(id_ for name, id_ in node.containers().items() if name.startswith("k8s_app_greeter"))


def log_of(node: Node) -> str:
    return node.docker("logs", container(node))


def inside(node: Node, script: str) -> str:
    return node.docker("exec", container(node), "sh", "-c", script)


def test_a_pod_reads_the_config_map_and_the_secret_beside_it(node: Node) -> None:
    """Case 07"""
    wanted = f"greeting=hello token={CANARY} file=hello\n"
    eventually(lambda: log_of(node) == wanted, within=10)
    assert inside(node, "cat /token/token /all/token") == CANARY * 2
    assert inside(node, "grep -E ' /(token|all) ' /proc/mounts | cut -d' ' -f1,4 | cut -d, -f1") == "tmpfs ro\n" * 2


def test_a_secret_is_nowhere_else(node: Node) -> None:
    """Every answer of the API, the describe text, every database, every log of the agent, all that the bus stores."""
    (seen,) = (node.pod("spelt-out")["status"]["containerStatuses"],)
    assert "withheld" in seen[0]["state"]["terminated"]["message"]
    shown = {
        path: node.get(path)[1].decode()
        for path in ("/pods", "/runningpods/", "/podbus/events", "/podbus/sources", "/podbus/status", "/stats/summary")
    }
    for command in (("describe", "pod", "greeter"), ("describe", "pod", "spelt-out"), ("get", "pods", "-o", "yaml")):
        done = node.podbus(*command)
        assert done.returncode == 0, done.stderr
        shown[" ".join(command)] = done.stdout
    assert {name for name, text in shown.items() if CANARY in text} == set()
    assert CANARY not in node.log()
    subprocess.run(["sync"], check=True)
    found = [path for path in stored_files(node) if CANARY.encode() in path.read_bytes()]
    assert found == []
    for database in node.data.glob("*.db"):
        copy = node.data / f"{database.name}.copy"
        with sqlite3.connect(database) as link, sqlite3.connect(copy) as target:
            link.backup(target)
        assert CANARY.encode() not in copy.read_bytes(), database
        copy.unlink()


def stored_files(node: Node) -> list[Path]:
    """All that the node keeps on a disk: databases, logs, the bus's store, the pods' directories. Not what is mounted
    from memory, nor a container's own output."""
    mounted = [*mounts_below(node.data)]
    assert len([point for point in mounted if "~secret" in point or "~projected" in point]) == 2
    everything = (path for path in node.data.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in everything if not any(str(path).startswith(f"{point}/") for point in mounted)]


def test_the_bus_gives_a_secret_to_nobody_but_podworker(node: Node) -> None:
    """Asked as every user that there is, with its own password."""
    uid = node.pod("greeter")["metadata"]["uid"]
    paths = DataPaths(node.data)
    refused = []
    for user in [*SERVICES, "operator"]:
        credentials = load_credentials(paths.bus_credentials(user))
        refused += [user] if asyncio.run(is_refused(node, credentials, user, uid, "greet-token")) else []
    assert sorted(refused) == sorted({*SERVICES, "operator"} - {"podworker"})


def test_podworker_gets_no_secret_that_the_pod_does_not_refer_to(node: Node) -> None:
    other = "apiVersion: v1\nkind: Secret\nmetadata: {name: other}\nstringData: {token: x}\n"
    node.apply("other.yaml", other)
    uid = node.pod("greeter")["metadata"]["uid"]
    credentials = load_credentials(DataPaths(node.data).bus_credentials("podworker"))
    eventually(lambda: asyncio.run(code(node, credentials, uid, "other")) == "forbidden", within=10)
    assert asyncio.run(code(node, credentials, "no-such-pod", "greet-token")) == "conflict"


async def is_refused(node: Node, credentials: Credentials, user: str, uid: str, name: str) -> bool:
    bus = await connect(credentials, node=node.name, service=user, name="test")
    try:
        await bus.request(SECRET, SecretQuery(uid=uid, name=name), timeout=1)
    except BusUnavailable:
        return True
    finally:
        await bus.drain()
    return False


async def code(node: Node, credentials: Credentials, uid: str, name: str) -> str:
    bus = await connect(credentials, node=node.name, service="podworker", name="test")
    try:
        await bus.request(SECRET, SecretQuery(uid=uid, name=name), timeout=2)
    except RemoteError as error:
        return error.code
    finally:
        await bus.drain()
    return ""


def test_a_change_reaches_the_file_and_not_the_variable(node: Node) -> None:
    """Case 07; so does a changed Secret."""
    before = container(node)
    node.apply("07.yaml", CASE_07.replace("greeting: hello", "greeting: bye").replace(CANARY, f"{CANARY}-2"))
    eventually(lambda: inside(node, "cat /etc/greet/greeting /token/token") == f"bye{CANARY}-2", within=10)
    assert inside(node, "echo $GREETING $TOKEN") == f"hello {CANARY}\n"
    assert container(node) == before


def test_what_is_removed_under_a_running_pod_is_told_and_stays_in_it(node: Node) -> None:
    """Case 07"""
    before = container(node)
    documents = node_documents(node)
    node.apply("07.yaml", documents[2])
    wanted = {
        f'Pod "default/greeter" needs {what}, which no manifest holds'
        for what in (
            'ConfigMap "default/greet" (container app, volume greet)',
            'Secret "default/greet-token" (container app, volume token, volume all)',
        )
    }

    def told() -> bool:
        source = node.json("/podbus/sources")["sources"][0]
        return wanted <= {warning["message"] for warning in source["warnings"]}

    eventually(told, within=10)
    path = f"/podbus/events?namespace=default&name=greeter-{node.name}"
    failed = 'MountVolume.SetUp failed for volume "greet" : configmap "greet" not found'
    eventually(lambda: failed in [e["message"] for e in node.json(path)["events"]], within=10)
    assert container(node) == before
    assert is_ready(node.pod("greeter"))
    assert inside(node, "cat /etc/greet/greeting") == "bye"


def node_documents(node: Node) -> list[str]:
    return (node.manifests / "07.yaml").read_text().split("---\n")


def test_nothing_in_memory_is_left_when_all_has_ended(node: Node) -> None:
    """`podbus down --pods`: no agent is there any more that could unmount."""
    assert mounts_below(node.data)
    node.apply("07.yaml", CASE_07)
    node.stop()
    done = node.podbus("down", "--pods")
    assert done.returncode == 0, done.stderr
    assert mounts_below(node.data) == {}
    assert [path for path in node.data.rglob("token") if path.is_file()] == []
