"""The node as containers: the image is built, brought up, scaled, and taken down."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from services.podworker.adapters.mounting import mounts_below
from tests.support.compose_node import ComposeNode
from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import ROOT, is_ready, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.serial, pytest.mark.timeout(300)]

SERVICES = {"nats", "source", "podworker", "status", "stats", "api"}
HEALTHY_SECONDS = 60
"""The first check comes after 10 s, an unready one is repeated every 10 s."""


@pytest.fixture(scope="module")
def made() -> Iterator[ComposeNode]:
    """Every test starts it: it may have been taken down by another."""
    docker_client().close()
    subprocess.run([ROOT / "deploy" / "compose" / "build.sh"], check=True, timeout=280, stdin=subprocess.DEVNULL)
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        node = ComposeNode(Path(directory), project=Path(directory).name.replace("_", "0").lower())
        try:
            yield node
        finally:
            node.close()


@pytest.fixture
def node(made: ComposeNode) -> ComposeNode:
    made.start()
    return made


def apply_pods(node: ComposeNode, names: set[str]) -> None:
    for name in names:
        node.apply(f"{name}.yaml", sleeper(name, grace=2))
    eventually(lambda: names <= node.ready_pods(), within=60)


def test_every_service_becomes_healthy_and_the_example_runs(node: ComposeNode) -> None:
    node.apply("web.yaml", (ROOT / "deploy" / "examples" / "web.yaml").read_text())
    eventually(lambda: is_ready(node.pod("web")), within=30)
    assert node.get("/pods", token="")[0] == 401
    assert {name[:-2] for name in node.services()} == {*SERVICES, "setup"}
    eventually(lambda: not node.unhealthy(), within=HEALTHY_SECONDS, every=0.5)
    node_object = node.json("/podbus/node")
    assert node_object["metadata"]["name"] == node.name


def test_only_podworker_has_the_engine_and_none_is_privileged(node: ComposeNode) -> None:
    for name, one in node.services().items():
        host = one["HostConfig"]
        assert not host["Privileged"], name
        assert host["CapDrop"] == ["ALL"], name
        assert "no-new-privileges:true" in host["SecurityOpt"], name
        mounts = [mount["Source"] for mount in one["Mounts"]]
        assert any("docker.sock" in source for source in mounts) == name.startswith("podworker"), (name, mounts)
        if name.startswith(("nats", "status", "stats", "api")):
            assert not host["CapAdd"], name


def test_a_manifest_that_only_its_owner_may_read_runs(node: ComposeNode) -> None:
    """As under `podbus up`, where the source is root."""
    scratch = node.manifests / ".closed"
    scratch.write_text(sleeper("closed", grace=2))
    os.chown(scratch, 1000, 1000)
    scratch.chmod(0o600)
    scratch.rename(node.manifests / "closed.yaml")
    eventually(lambda: is_ready(node.pod("closed")), within=20)


def test_logs_and_measurements_reach_the_api_from_the_other_containers(node: ComposeNode) -> None:
    """Byte streams by sockets in the data directory, cgroups and /proc of the host."""
    node.apply("says.yaml", sleeper("says", command="echo hello; trap 'exit 0' TERM; sleep 3600 & wait", grace=2))
    eventually(lambda: is_ready(node.pod("says")), within=20)
    log = f"/containerLogs/default/says-{node.name}/main"
    eventually(lambda: node.get(log) == (200, b"hello\n"), within=10)

    def is_measured() -> bool:
        (says,) = (pod for pod in node.json("/stats/summary")["pods"] if pod["podRef"]["name"].startswith("says-"))
        (main,) = says["containers"]
        network = says["network"]["interfaces"][0]
        return bool(main["memory"]["workingSetBytes"] and main["cpu"]["usageCoreNanoSeconds"] and network["rxBytes"])

    eventually(is_measured, within=30, every=0.5)


VOLUMES = """apiVersion: v1
kind: Secret
metadata: {{name: token}}
stringData: {{token: s3cret}}
---
apiVersion: v1
kind: Pod
metadata: {{name: volumes}}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: main
    image: busybox:1.36
    command: [sh, -c, "cat /token/token > /sub/copy; echo x > /memory/x; trap 'exit 0' TERM; sleep 3600 & wait"]
    volumeMounts:
    - {{name: token, mountPath: /token}}
    - {{name: memory, mountPath: /memory}}
    - {{name: disk, mountPath: /sub, subPath: a/b}}
    - {{name: disk, mountPath: /disk}}
    - {{name: host, mountPath: /host, subPath: made}}
  volumes:
  - {{name: token, secret: {{secretName: token}}}}
  - {{name: memory, emptyDir: {{medium: Memory, sizeLimit: 1Mi}}}}
  - {{name: disk, emptyDir: {{}}}}
  - {{name: host, hostPath: {{path: {host}, type: DirectoryOrCreate}}}}
"""


def test_volumes_that_a_contained_worker_mounts_reach_the_pods(node: ComposeNode) -> None:
    """By the shared data directory; a hostPath is the host's, not the worker's container's."""
    host = node.manifests.parent / "host" / "path"
    node.apply("volumes.yaml", VOLUMES.format(host=host))
    eventually(lambda: is_ready(node.pod("volumes")), within=30)
    (main,) = (id_ for name, id_ in node.containers().items() if name.startswith("k8s_main_volumes"))
    script = "cat /disk/a/b/copy /memory/x; grep -c -E '^tmpfs /(token|memory) ' /proc/mounts; touch /host/f"
    eventually(lambda: node.docker("exec", main, "sh", "-c", script) == "s3cretx\n2\n", within=10)
    assert (host / "made" / "f").exists()
    below = node.data / "pods" / node.pod("volumes")["metadata"]["uid"]
    assert mounts_below(below)
    node.withdraw("volumes.yaml")
    eventually(lambda: not below.exists(), within=30)
    assert mounts_below(below) == {}
    assert (host / "made" / "f").exists()


def test_pods_go_on_when_one_of_three_workers_is_killed(node: ComposeNode) -> None:
    first = {f"a{number}" for number in range(6)}
    node.compose("up", "-d", "--scale", "podworker=3")
    apply_pods(node, first)
    eventually(lambda: not node.unhealthy(), within=HEALTHY_SECONDS, every=0.5)
    before = node.containers()
    killed = next(one for name, one in node.services().items() if name in ("podworker_2", "podworker-2"))
    os.kill(killed["State"]["Pid"], signal.SIGKILL)

    def is_back() -> bool:
        one = node.services()[killed["Name"].lstrip("/").removeprefix(node.project)[1:]]
        return bool(one["RestartCount"] == 1 and one["State"]["Running"])

    eventually(is_back, within=30)
    # Twelve pods spread over 256 places: the killed worker's are among them, whoever has them now.
    apply_pods(node, {f"b{number}" for number in range(6)})
    eventually(lambda: not node.unhealthy(), within=HEALTHY_SECONDS, every=0.5)
    assert before.items() <= node.containers().items()
    for pod in node.pods().values():
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def test_down_leaves_the_pods_and_up_adopts_them(node: ComposeNode) -> None:
    apply_pods(node, {"stays"})
    before = node.containers()
    node.stop()
    assert not node.services()
    assert node.containers() == before
    node.start()
    eventually(lambda: is_ready(node.pod("stays")), within=10)
    assert node.containers() == before
    node.stop()
    node.end_pods()
    assert not node.containers(every=True)
