"""What a real kubelet 1.20.2 told the API server of 14 pods, its Node and Lease, and what this node tells: only listed
differences."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
import yaml

from tests.cluster.conftest import is_node_ready
from tests.support.cluster import Cluster
from tests.support.docker_env import docker_client
from tests.support.event_differences import GOLDEN, Told, recorded, told
from tests.support.eventually import eventually
from tests.support.golden_form import differences, normal_status
from tests.support.joined_node import JoinedNode

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

Json = dict[str, Any]

OBJECTS = list(yaml.safe_load_all((GOLDEN / "cases.yaml").read_text()))
CONFIGS = [one for one in OBJECTS if one["kind"] != "Pod"]
PODS = {one["metadata"]["name"]: one for one in OBJECTS if one["kind"] == "Pod"}
STATUSES: Json = json.loads((GOLDEN / "statuses.json").read_text())
SILENT = ("e01-config",)
"""Nothing of it was recorded but its status and output."""
ALONE = ("e13-deadline",)
"""Begun when the others have come to rest: among many that start at once its container may start too late for it."""


@pytest.fixture(scope="module")
def node(cluster: Cluster) -> Iterator[JoinedNode]:
    """Without clusterDNS, as the recorded one."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = JoinedNode(Path(directory), cluster, config="")
        try:
            made.start()
            eventually(lambda: is_node_ready(cluster), within=60)
            cluster.apply(yaml.safe_dump_all(CONFIGS))
            cluster.apply(yaml.safe_dump_all([here(pod) for name, pod in PODS.items() if name not in ALONE]))
            yield made
            cluster.kubectl("delete", "pods", "--all", "--grace-period=1", within=120)
        finally:
            made.close()


def here(pod: Json) -> Json:
    return {**pod, "spec": {**pod["spec"], "nodeName": "localhost"}}


def begin(cluster: Cluster, case: str) -> None:
    if case in ALONE:
        cluster.apply(yaml.safe_dump(here(PODS[case])))


def kill_sandbox(cluster: Cluster, node: JoinedNode, case: str) -> None:
    """Once, as in the recording."""
    pod = eventually(lambda: cluster.pod(case) if is_running(cluster.pod(case)) else None, within=60)
    if pod["status"]["containerStatuses"][0]["restartCount"]:
        return
    filters = (f"label=io.kubernetes.pod.uid={pod['metadata']['uid']}", "label=io.kubernetes.docker.type=podsandbox")
    node.docker("kill", *node.docker("ps", "-q", "--filter", filters[0], "--filter", filters[1]).split())


def is_running(pod: Json) -> bool:
    statuses = pod["status"].get("containerStatuses") or [{"state": {}}]
    return all("running" in one["state"] for one in statuses)


@pytest.mark.parametrize("case", sorted(set(PODS) - set(SILENT)))
def test_events_are_those_of_the_kubelet(cluster: Cluster, node: JoinedNode, case: str) -> None:
    theirs = {without_capacity(one) for one in recorded(case, is_static=False)}
    begin(cluster, case)
    if case == "e14-gates":
        kill_sandbox(cluster, node, case)

    def ours() -> set[Told]:
        uid = cluster.pod(case)["metadata"]["uid"]
        listed = cluster.get("/api/v1/namespaces/default/events")["items"]
        events = [
            {**one, "involved": one["involvedObject"]}
            for one in listed
            if one["involvedObject"].get("uid") == uid and one["source"]["component"] == "kubelet"
        ]
        return {without_capacity(one) for one in told(case, uid, case, events)}

    def same() -> bool:
        found = ours()
        assert found == theirs, f"missing: {sorted(theirs - found)}\nmore: {sorted(found - theirs)}"
        return True

    eventually(same, within=90)


def without_capacity(one: Told) -> Told:
    """The machine's and its pods' amounts."""
    return one._replace(message=re.sub(r"(used|capacity): \d+", r"\1: <n>", one.message))


class Listed(NamedTuple):
    case: str
    path: str
    """Regular expression."""
    fits: Callable[[Any, Any], bool]
    """(theirs, ours)"""
    why: str


LISTED = (
    Listed(
        "e07-no-such-image",
        r"\.containers\.c\.state\.message",
        lambda theirs, ours: ours.startswith(theirs) and "connection refused; next try at " in ours,
        "the newest kubelet says why, and this node when it tries again",
    ),
    Listed(
        "e12-toobig",
        r"\.message",
        lambda theirs, ours: without_amounts(ours) == without_amounts(theirs.replace("Pod ", "Pod was rejected: ")),
        "the newest kubelet's words; the capacity is the machine's",
    ),
    Listed(
        "e12-toobig",
        r"\.qosClass",
        lambda theirs, ours: (theirs, ours) == (None, "Burstable"),
        "the newest kubelet tells the class of a rejected pod too",
    ),
    Listed(
        "e13-deadline",
        r"\.conditions\.\w+",
        lambda theirs, ours: theirs == "<absent>" and ours[0] in ("True", "False"),
        "1.20.2 wrote a new status over the old one; the newest keeps the conditions",
    ),
    Listed(
        "e13-deadline",
        r"\.containers\.c\.(state\..+|state|started)",
        lambda theirs, ours: theirs in ("running", "<absent>", None) and ours not in ("running", "waiting"),
        "1.20.2 left the container as running for ever; the newest says how it ended",
    ),
)


def without_amounts(text: str) -> str:
    return re.sub(r"\d{4,}", "<n>", text)


@pytest.mark.parametrize("case", sorted(PODS))
def test_statuses_are_those_of_the_kubelet(cluster: Cluster, node: JoinedNode, case: str) -> None:
    if cluster.call("GET", f"/api/v1/namespaces/default/pods/{case}")[0] == 404:
        begin(cluster, case)
    if case == "e14-gates":
        kill_sandbox(cluster, node, case)
    theirs = normal(STATUSES[case], {"name": case, "uid": ""}, "peer")

    def same() -> bool:
        pod = cluster.pod(case)
        found = differences(theirs, normal(pod["status"], pod["metadata"], "localhost"))
        rest = {path: pair for path, pair in found.items() if not is_listed(case, path, *pair)}
        assert rest == {}, rest
        return True

    eventually(same, within=90)


def normal(status: Json, metadata: Json, node: str) -> Json:
    given = {**status, "conditions": status.get("conditions") or []}
    form = normal_status(given, metadata, node)
    del form["hasStartTime"]  # the recording left it out
    return form


def is_listed(case: str, path: str, theirs: Any, ours: Any) -> bool:
    return any(one.case == case and re.fullmatch(one.path, path) and one.fits(theirs, ours) for one in LISTED)


def test_files_and_variables_look_as_the_kubelets(cluster: Cluster, node: JoinedNode) -> None:
    """Modes, owners, links and kinds of mounts; what differs each time is left out."""
    theirs = looks((GOLDEN / "e01.log").read_text())

    def same() -> bool:
        ours = looks(cluster.kubectl("logs", "e01-config", check=False))
        assert ours == theirs, "\n".join(difflib.unified_diff(theirs, ours, "kubelet", "podbus", lineterm=""))
        return True

    eventually(same, within=60)


def looks(text: str) -> list[str]:
    """Without sizes, times, and the options of mounts."""
    text = re.sub(r"\.\.\d{4}(_\d\d){5}\.\w+", "..<time>", text)
    text = re.sub(r"\d+ (root) +(root) +\d+ \w{3} +\d+ [\d:]+", r"\1 \2", text)
    text = re.sub(r"(?m)^total \d+$", "total", text)
    text = re.sub(r"/dev/\w+ on (\S+) type \w+ \(.*\)", r"<disk> on \1", text)
    text = re.sub(r"tmpfs on (\S+) type tmpfs \((r\w).*\)", r"tmpfs on \1 \2", text)
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_node_and_its_lease_look_as_the_kubelets(cluster: Cluster, node: JoinedNode) -> None:
    """The same labels, addresses, resources, conditions and fields; versions, sizes and names are this machine's."""
    theirs, ours = json.loads((GOLDEN / "node.json").read_text()), cluster.get("/api/v1/nodes/localhost")
    assert keys(ours["metadata"]["labels"]) == keys(theirs["metadata"]["labels"])
    assert theirs["metadata"]["annotations"].items() <= ours["metadata"]["annotations"].items()
    for part in ("capacity", "allocatable", "daemonEndpoints"):
        assert keys(ours["status"][part]) == keys(theirs["status"][part])
    assert keys(theirs["status"]["nodeInfo"]) <= keys(ours["status"]["nodeInfo"])
    assert [one["type"] for one in ours["status"]["addresses"]] == ["InternalIP", "Hostname"]
    assert conditions(ours) == conditions(theirs)
    assert {frozenset(image) for image in ours["status"]["images"]} == {frozenset(("names", "sizeBytes"))}
    lease = cluster.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/localhost")
    recorded_lease = json.loads((GOLDEN / "lease.json").read_text())
    assert keys(lease["spec"]) == keys(recorded_lease["spec"])
    assert lease["spec"]["leaseDurationSeconds"] == recorded_lease["spec"]["leaseDurationSeconds"]
    assert re.search(r"\.\d{6}Z$", lease["spec"]["renewTime"])
    (owner,) = lease["metadata"]["ownerReferences"]
    assert keys(owner) == keys(recorded_lease["metadata"]["ownerReferences"][0])
    assert (owner["kind"], owner["uid"]) == ("Node", ours["metadata"]["uid"])


def keys(mapping: Json) -> set[str]:
    return set(mapping)


def conditions(node: Json) -> set[tuple[str, str, str, str]]:
    return {
        (one["type"], one["status"], one["reason"], one["message"].replace("podbus", "kubelet"))
        for one in node["status"]["conditions"]
    }
