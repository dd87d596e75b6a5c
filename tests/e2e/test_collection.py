"""What a pod leaves on the node while it lives, and that nothing of it stays when it's gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import ROOT, Node, NodeMaker, is_ready, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

ROTATED_AT = 20 << 10
FILES = 3
LINES = 300
CHATTY = (
    f"sleep 3; i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); printf '%d %01000d\\n' $i 0; usleep 10000; done; sleep 1"
)


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """One node for all that ends no other's pod."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(
            Path(directory), config=f"containerLogMaxSize: {ROTATED_AT >> 10}Ki\ncontainerLogMaxFiles: {FILES}\n"
        )
        try:
            made.start()
            made.apply("keep.yaml", sleeper("keep"))
            made.apply("loop.yaml", sleeper("loop", command="echo run; exit 1"))
            made.apply("chatty.yaml", sleeper("chatty", command=CHATTY, restartPolicy="Never"))
            made.apply("gone.yaml", sleeper("gone"))
            yield made
        finally:
            made.close()


def logs_of(node: Node) -> Path:
    return node.data.parent / "logs"


def inspected(node: Node, *filters: str) -> list[dict[str, Any]]:
    """This instance's containers with these labels, newest first."""
    words = [f"label={one}" for one in (f"podbus.instance={node.instance}", *filters)]
    ids = node.docker("ps", "-aq", *(part for one in words for part in ("--filter", one))).split()
    try:
        return list(json.loads(node.docker("inspect", *ids))) if ids else []
    except subprocess.CalledProcessError as error:  # one of them went between the two calls
        raise AssertionError(error.stderr) from error


def restarted(node: Node) -> dict[str, Any]:
    (status,) = node.pod("loop")["status"]["containerStatuses"]
    assert status["restartCount"] >= 1 and "waiting" in status["state"]
    uid = node.pod("loop")["metadata"]["uid"]
    assert len(inspected(node, f"io.kubernetes.pod.uid={uid}")) == 2, "the sandbox and the newest"
    return dict(status)


def test_names_and_labels_are_those_that_tools_know(node: Node) -> None:
    """D01, lifecycle 8."""
    status = eventually(lambda: restarted(node), within=30)
    pod = node.pod("loop")
    name, uid, attempt = pod["metadata"]["name"], pod["metadata"]["uid"], status["restartCount"]
    ended = [
        one
        for one in inspected(node, f"io.kubernetes.pod.uid={uid}")
        if one["Id"] in status["lastState"]["terminated"]["containerID"]
    ]
    (container,) = ended
    (sandbox,) = inspected(node, f"io.kubernetes.pod.uid={uid}", "io.kubernetes.docker.type=podsandbox")
    assert container["Name"] == f"/k8s_main_{name}_default_{uid}_{attempt}"
    assert sandbox["Name"] == f"/k8s_POD_{name}_default_{uid}_0"
    both = {
        "io.kubernetes.pod.name": name,
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": uid,
        "annotation.io.kubernetes.pod.terminationGracePeriod": "5",
    }
    assert both.items() <= sandbox["Config"]["Labels"].items()
    assert sandbox["Config"]["Labels"]["io.kubernetes.container.name"] == "POD"
    labels = container["Config"]["Labels"]
    assert {
        **both,
        "io.kubernetes.container.name": "main",
        "io.kubernetes.docker.type": "container",
        "io.kubernetes.sandbox.id": sandbox["Id"],
        "io.kubernetes.container.logpath": f"{logs_of(node)}/pods/default_{name}_{uid}/main/{attempt}.log",
        "annotation.io.kubernetes.container.restartCount": str(attempt),
        "annotation.io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
        "annotation.io.kubernetes.container.terminationMessagePolicy": "File",
    }.items() <= labels.items()
    int(labels["annotation.io.kubernetes.container.hash"], 16)


def test_a_chain_of_links_leads_to_the_engines_log_anew_for_each_restart(node: Node) -> None:
    """D02."""
    status = eventually(lambda: restarted(node), within=30)
    pod = node.pod("loop")
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    id_ = status["lastState"]["terminated"]["containerID"].removeprefix("docker://")
    flat = logs_of(node) / "containers" / f"{name}_default_main-{id_}.log"
    link = Path(os.readlink(flat))
    assert link == logs_of(node) / "pods" / f"default_{name}_{uid}" / "main" / f"{status['restartCount']}.log"
    (container,) = [one for one in inspected(node, f"io.kubernetes.pod.uid={uid}") if one["Id"] == id_]
    assert os.readlink(link) == container["LogPath"]
    assert [json.loads(line)["log"] for line in flat.read_text().splitlines()] == ["run\n"]


def test_a_chatty_container_is_bounded_and_its_log_is_followed_over_rotations(node: Node) -> None:
    def started() -> str:
        (status,) = node.pod("chatty")["status"]["containerStatuses"]
        assert "running" in status["state"]
        return str(status["containerID"]).removeprefix("docker://")

    id_ = eventually(started, within=20)
    command = [sys.executable, "-m", "cli.main", "logs", "-f", "chatty", "--data", str(node.data)]
    followed = subprocess.run(
        command, cwd=ROOT, env=node.environment, capture_output=True, text=True, timeout=60, check=True
    )
    numbers = [int(line.split()[0]) for line in followed.stdout.splitlines()]
    assert numbers == list(range(1, LINES + 1))
    (container,) = inspected(
        node, f"io.kubernetes.pod.uid={node.pod('chatty')['metadata']['uid']}", "io.kubernetes.docker.type=container"
    )
    assert container["Id"] == id_
    files = list(Path(container["LogPath"]).parent.glob("*-json.log*"))
    assert len(files) == FILES
    assert sum(path.stat().st_size for path in files) <= FILES * (ROTATED_AT + 2048)
    tail = node.podbus("logs", "--tail", "30", "chatty").stdout.splitlines()
    assert [int(line.split()[0]) for line in tail] == list(range(LINES - 29, LINES + 1)), "from the rotated files, too"


def traces(node: Node, uid: str) -> list[str]:
    """All that there is of a pod on the machine."""
    logs = logs_of(node)
    return [
        *(one["Name"] for one in inspected(node, f"io.kubernetes.pod.uid={uid}")),
        *(str(path) for path in (node.data / "pods").glob(uid)),
        *(str(path) for path in logs.glob(f"pods/*_{uid}")),
        *(str(path) for path in logs.glob("containers/*") if f"_{uid}/" in os.readlink(path)),
        *(str(path) for path in Path("/sys/fs/cgroup").glob(f"*/kubepods/*/pod{uid}")),
    ]


def test_of_a_removed_pod_nothing_stays_and_others_are_untouched(node: Node) -> None:
    """D04."""
    eventually(lambda: is_ready(node.pod("gone")) and is_ready(node.pod("keep")), within=20)
    gone, kept = (node.pod(name)["metadata"]["uid"] for name in ("gone", "keep"))
    before = traces(node, kept)
    assert len(traces(node, gone)) >= 5
    node.withdraw("gone.yaml")
    eventually(lambda: not traces(node, gone), within=30)
    assert traces(node, kept) == before
    assert node.pod("keep")["status"]["containerStatuses"][0]["restartCount"] == 0


def test_leftovers_are_collected_after_a_crash_and_by_down(a_node: NodeMaker) -> None:
    node = a_node()
    node.apply("a.yaml", sleeper("a"))
    eventually(lambda: is_ready(node.pod("a")), within=20)
    uid = node.pod("a")["metadata"]["uid"]
    assert node.stop() == 0
    # what a crash between the row and the files would leave
    orphan = node.data / "pods" / "deadbeef"
    (orphan / "volumes").mkdir(parents=True)
    os.utime(orphan, (0, 0))
    link = logs_of(node) / "pods" / "default_old-n1_deadbeef" / "main" / "0.log"
    link.parent.mkdir(parents=True)
    link.symlink_to("/nowhere/x-json.log")
    (logs_of(node) / "containers" / "old.log").symlink_to(link)
    node.start()
    eventually(lambda: not traces(node, "deadbeef"), within=30)
    assert len(traces(node, uid)) >= 5
    assert node.stop() == 0
    done = node.podbus("down", "--pods")
    assert done.returncode == 0, done.stderr
    assert traces(node, uid) == []
    assert list((node.data / "pods").iterdir()) == []


def test_a_terminals_log_is_read_whole(node: Node) -> None:
    command = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); printf '%d %0100d\\n' $i 0; done; sleep 3600"
    manifest = sleeper("terminal", command=command).replace("    image:", "    tty: true\n    image:")
    node.apply("terminal.yaml", manifest)
    eventually(lambda: is_ready(node.pod("terminal")), within=20)

    def all_lines() -> bool:
        lines = node.podbus("logs", "terminal").stdout.splitlines()
        assert [int(line.split()[0]) for line in lines] == list(range(1, 101))
        return True

    eventually(all_lines, within=20)


def test_names_longer_than_a_file_name_may_be_have_their_links_too(node: Node) -> None:
    name = "l" * 240
    node.apply("long.yaml", sleeper(name))
    eventually(lambda: is_ready(node.pod(name)), within=20)
    uid = node.pod(name)["metadata"]["uid"]
    (directory,) = logs_of(node).glob(f"pods/*_{uid}")
    (flat,) = [path for path in logs_of(node).glob("containers/*") if f"_{uid}/" in os.readlink(path)]
    assert (len(directory.name), len(flat.name)) == (255, 255)
    assert flat.name.startswith(name) and flat.resolve().is_file()
    node.withdraw("long.yaml")
    eventually(lambda: not traces(node, uid), within=30)
