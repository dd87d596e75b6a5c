"""What a node tells of pods that end, fail or wait, side by side on one node (T01, T02, T06 to T13, T17)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from shared.kube.times import parse_rfc3339
from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, is_ready

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

Json = dict[str, Any]

HEAD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  {spec}\n"
C = "  - {{name: {name}, image: 'busybox:1.36', command: [sh, -c, '{command}']{more}}}\n"
SLEEP = "trap exit TERM; sleep 3600 & wait"
FILL = "i=0; while [ $i -lt 1024 ]; do echo L$((i+1000)); i=$((i+1)); done"
AS_NOBODY = 'su -s /bin/sh nobody -c "id -un > /why; ls -l /why | cut -c1-10 >> /why"; exit 4'


def pod(name: str, *containers: str, spec: str = "restartPolicy: Never") -> str:
    return HEAD.format(name=name, spec=spec) + "  containers:\n" + "".join(containers)


def container(command: str, name: str = "c", more: str = "") -> str:
    return C.format(name=name, command=command, more=f", {more}" if more else "")


NO_SUCH_COMMAND = "  - {name: c, image: 'busybox:1.36', command: [/no/such/thing]}\n"
FALLBACK = "terminationMessagePolicy: FallbackToLogsOnError"
SECRET = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: creds}\nstringData: {TOKEN: env-s3cret, file: file-s3cret}\n---\n"
)
SECRETS_USED = (
    "envFrom: [{secretRef: {name: creds}}], volumeMounts: [{name: v, mountPath: /v}], "
    "terminationMessagePolicy: FallbackToLogsOnError"
)
PODS = {
    "t01": pod("t01", container(SLEEP), spec="restartPolicy: Always"),
    "t02": pod("t02", "  - {name: c, image: 'localhost/nope:1', imagePullPolicy: Never}\n"),
    "t06": pod("t06", container("echo -n because > /dev/termination-log; exit 3")),
    "t06-log": pod("t06-log", container("echo -n because; exit 3", more=FALLBACK)),
    "t06-secret": SECRET
    + pod(
        "t06-secret",
        container("echo token $TOKEN; cat /v/file; exit 3", more=SECRETS_USED),
        spec="restartPolicy: Never\n  volumes: [{name: v, secret: {secretName: creds}}]",
    ),
    "t08": pod("t08", container(AS_NOBODY, more="terminationMessagePath: /why")),
    "t09": pod("t09", container(f"({FILL}) > /dev/termination-log; exit 1")),
    "t10": pod(
        "t10",
        "  - {name: c, image: 'busybox:1.36', command: [tail, /dev/zero], resources: {limits: {memory: 20Mi}}}\n",
    ),
    "t11": pod("t11", NO_SUCH_COMMAND, spec="restartPolicy: Always"),
    "t11-never": pod("t11-never", NO_SUCH_COMMAND),
    "t12": pod("t12", container(SLEEP)),
    "t13": pod("t13", container("exit 1", "bad"), container(SLEEP, "good"), spec="restartPolicy: Always"),
    "t17": pod("t17", container(SLEEP), spec="activeDeadlineSeconds: 5"),
    "t18": pod("t18", container(SLEEP), spec='readinessGates: [{conditionType: "x.io/ready"}]'),
}


ALONE = ("t17",)
"""Begun by its test: among many that start at once its container may start too late for its deadline."""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """One node for all cases."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            for name, text in PODS.items():
                if name in ALONE:
                    continue
                made.apply(f"{name}.yaml", text)
            yield made
        finally:
            made.close()


def status_of(node: Node, name: str) -> Json:
    status: Json = node.pod(name)["status"]
    return status


def the_end(node: Node, name: str) -> Json:
    """How the pod's one container ended; the pod has failed by that."""

    def ended() -> Json:
        status = status_of(node, name)
        assert status["phase"] == "Failed"
        end: Json = status["containerStatuses"][0]["state"]["terminated"]
        return end

    return eventually(ended, within=60)


def conditions_of(status: Json) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c.get("reason", ""), c.get("message", "")) for c in status["conditions"]}


def test_a_running_pods_conditions_are_true_and_its_times_whole_seconds(node: Node) -> None:
    """T01."""
    eventually(lambda: is_ready(node.pod("t01")), within=30)
    status = status_of(node, "t01")
    conditions = conditions_of(status)
    assert set(conditions) == {
        *("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    }
    assert set(conditions.values()) == {("True", "", "")}
    started = status["containerStatuses"][0]["state"]["running"]["startedAt"]
    times = [status["startTime"], started, *(c["lastTransitionTime"] for c in status["conditions"])]
    assert all(len(time) == len("2026-12-01T00:00:00Z") for time in times)
    assert parse_rfc3339(status["startTime"]) <= parse_rfc3339(started)


def test_a_pod_without_its_image_has_a_sandbox_and_is_pending(node: Node) -> None:
    """T02."""

    def waits() -> bool:
        return "ErrImageNeverPull" in str(status_of(node, "t02").get("containerStatuses"))

    eventually(waits, within=30)
    status = status_of(node, "t02")
    assert status["phase"] == "Pending"
    conditions = conditions_of(status)
    assert conditions["PodReadyToStartContainers"] == ("True", "", "")
    assert conditions["Ready"] == ("False", "ContainersNotReady", "containers with unready status: [c]")


@pytest.mark.parametrize("name", ["t06", "t06-log"])
def test_why_a_container_failed_is_in_its_status(node: Node, name: str) -> None:
    """T06, T04: from its file, and from its log where that's asked for."""
    end = the_end(node, name)
    assert (end["exitCode"], end["reason"], end["message"]) == (3, "Error", "because")
    assert conditions_of(status_of(node, name))["Ready"] == ("False", "PodFailed", "")


def test_a_message_from_the_log_tells_no_secret(node: Node) -> None:
    """Neither a variable's value nor a file's; the log itself has them."""
    assert the_end(node, "t06-secret")["message"] == "token ***\n***"


def test_anybody_may_write_the_message_at_a_path_of_its_own(node: Node) -> None:
    """T08: mode 0666."""
    end = the_end(node, "t08")
    assert end["exitCode"] == 4
    assert end["message"].split() == ["nobody", "-rw-rw-rw-"]


def test_of_a_long_message_the_last_4096_bytes_stay(node: Node) -> None:
    """T09: 6 KiB were written."""
    message = the_end(node, "t09")["message"]
    assert len(message) == 4096
    assert message.endswith("L2022\nL2023\n")


def test_a_memory_hog_is_told_as_oom_killed(node: Node) -> None:
    """T10."""
    end = the_end(node, "t10")
    assert (end["reason"], end["exitCode"]) == ("OOMKilled", 137)


def test_a_command_that_is_not_there_is_a_run_container_error_and_then_a_crash_loop(node: Node) -> None:
    """T11."""
    seen = set()

    def loops() -> bool:
        (shown,) = status_of(node, "t11")["containerStatuses"]
        reason: str = shown["state"].get("waiting", {}).get("reason", "")
        seen.add(reason)
        return reason == "CrashLoopBackOff" and "ContainerCannotRun" in str(shown["lastState"])

    eventually(loops, within=60)
    assert seen <= {"", "ContainerCreating", "RunContainerError", "CrashLoopBackOff"}
    assert status_of(node, "t11")["phase"] == "Running"

    def told() -> bool:
        events = node.json("/podbus/events")["events"]
        return any("/no/such/thing" in e["message"] for e in events if e["involved"]["name"] == "t11-n1")

    eventually(told, within=30)


def test_a_command_that_is_not_there_fails_a_pod_that_may_not_restart(node: Node) -> None:
    """T11."""
    end = the_end(node, "t11-never")
    assert (end["reason"], end["exitCode"]) == ("ContainerCannotRun", 127)
    assert "/no/such/thing" in end["message"]


def test_a_main_process_that_was_killed_is_an_error_and_no_oom(node: Node) -> None:
    """T12."""
    eventually(lambda: is_ready(node.pod("t12")), within=30)
    node.docker("kill", "-s", "KILL", status_of(node, "t12")["containerStatuses"][0]["containerID"].split("//")[1])
    end = the_end(node, "t12")
    assert (end["reason"], end["exitCode"]) == ("Error", 137)


def test_one_of_two_containers_in_a_crash_loop_leaves_the_pod_running_and_unready(node: Node) -> None:
    """T13."""

    def half() -> bool:
        states = {c["name"]: c["state"] for c in status_of(node, "t13")["containerStatuses"]}
        return "running" in states["good"] and states["bad"].get("waiting", {}).get("reason") == "CrashLoopBackOff"

    eventually(half, within=60)
    status = status_of(node, "t13")
    assert status["phase"] == "Running"
    assert conditions_of(status)["Ready"] == ("False", "ContainersNotReady", "containers with unready status: [bad]")


def test_at_its_deadline_a_pod_fails_and_its_container_ends(node: Node) -> None:
    """T17: within 5..9 s, by the container's own times."""
    node.apply("t17.yaml", PODS["t17"])
    end = the_end(node, "t17")
    status = status_of(node, "t17")
    assert (status["reason"], status["message"]) == (
        "DeadlineExceeded",
        "Pod was active on the node longer than the specified deadline",
    )
    lasted = parse_rfc3339(end["finishedAt"]) - parse_rfc3339(status["startTime"])
    assert 5 <= lasted <= 27
    uid = node.pod("t17")["metadata"]["uid"]
    filters = ("--filter", f"label=io.kubernetes.pod.uid={uid}")
    eventually(lambda: not node.docker("ps", "-q", *filters).split(), within=30)


def test_a_readiness_gate_that_nobody_answers_holds_a_pod_unready(node: Node) -> None:
    """T18, without an API server."""

    def containers_ready() -> bool:
        return conditions_of(status_of(node, "t18"))["ContainersReady"][0] == "True"

    eventually(containers_ready, within=30)
    assert conditions_of(status_of(node, "t18"))["Ready"] == (
        "False",
        "ReadinessGatesNotReady",
        'corresponding condition of pod readiness gate "x.io/ready" does not exist.',
    )
