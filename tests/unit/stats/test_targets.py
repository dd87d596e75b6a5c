"""The status bucket's reports -> what to measure."""

from __future__ import annotations

import msgspec
import pytest

from services.stats.core.model import ContainerTarget, ImageTarget, PodTarget, SystemTarget
from services.stats.core.targets import pod_target, targets_of
from shared.contracts.status import NodeImage, PodReport, RunningContainer, RuntimeReport
from shared.kube.status import PodStatus


def a_status(**changes: object) -> PodStatus:
    fields = {"phase": "Running", "qos_class": "Burstable", "start_time": "2026-12-01T00:33:27Z"} | changes
    return PodStatus(**fields)  # type: ignore[arg-type]


def a_report(**changes: object) -> PodReport:
    fields = {
        "v": 1, "node": "n", "ts": 0.0, "uid": "u-1", "namespace": "default", "name": "web-n",
        "source": "file", "gen": 1, "rev": 1, "owner": 0, "state": "sync",
        "cgroup_parent": "/kubepods/burstable/podu-1",
        "status": a_status(),
        "containers": [
            RunningContainer(name="POD", id="s" * 64, pid=40, started_at=7.0),
            RunningContainer(name="web", id="c" * 64, pid=41, started_at=8.0),
        ],
    } | changes  # fmt: skip
    return PodReport(**fields)  # type: ignore[arg-type]


def a_runtime(**changes: object) -> RuntimeReport:
    fields = {
        "v": 1, "node": "n", "ts": 0.0, "healthy": True, "relisted_at": 0.0, "cgroup_driver": "systemd",
        "root_dir": "/var/lib/docker",
        "images": [NodeImage(names=["a"], size=30), NodeImage(names=["b"], size=12)],
    } | changes  # fmt: skip
    return RuntimeReport(**fields)  # type: ignore[arg-type]


def test_the_sandbox_is_the_pods_and_never_one_of_its_containers() -> None:
    assert pod_target(a_report()) == PodTarget(
        uid="u-1",
        name="web-n",
        namespace="default",
        start_time=1_796_085_207.0,
        cgroup="/kubepods/burstable/podu-1",
        sandbox_id="s" * 64,
        sandbox_pid=40,
        sandbox_started_at=7.0,
        containers=(ContainerTarget(id="c" * 64, name="web", pid=41, started_at=8.0),),
    )


def test_a_pod_without_a_status_time_and_sandbox_is_still_a_target() -> None:
    target = pod_target(a_report(status=a_status(start_time=""), containers=[]))
    assert (target.start_time, target.sandbox_pid, target.containers) == (None, 0, ())


@pytest.mark.parametrize(("pod_ip", "expected"), [("10.0.0.1", True), ("172.17.0.2", False), ("", False)])
def test_a_pod_with_the_nodes_address_is_on_the_nodes_network(pod_ip: str, expected: bool) -> None:
    report = a_report(status=a_status(host_ip="10.0.0.1", pod_ip=pod_ip))
    assert pod_target(report).host_network is expected
    assert pod_target(a_report()).host_network is False


def test_images_weigh_what_they_take_together() -> None:
    assert targets_of([], a_runtime(images_bytes=35)).images == ImageTarget(root_dir="/var/lib/docker", used_bytes=35)


def test_images_that_were_not_looked_at_have_no_weight() -> None:
    assert targets_of([], a_runtime()).images == ImageTarget(root_dir="/var/lib/docker")
    assert targets_of([], None).images is None
    assert targets_of([], a_runtime(root_dir="")).images is None


def test_the_cgroup_of_all_pods_follows_the_engines_driver() -> None:
    assert targets_of([], a_runtime(), allocatable_memory=9).system == (
        SystemTarget(name="pods", cgroup="/kubepods.slice", memory_limit=9),
    )
    assert targets_of([], None).system == (SystemTarget(name="pods", cgroup="/kubepods"),)
    assert targets_of([], a_runtime(), cgroup_driver="cgroupfs").system[0].cgroup == "/kubepods"


def test_pods_keep_their_order() -> None:
    pods = [a_report(uid=uid) for uid in ("b", "a", "c")]
    assert [pod.uid for pod in targets_of(pods, None).pods] == ["b", "a", "c"]


def test_targets_compare_equal_when_nothing_that_is_measured_changed() -> None:
    """A new revision of a status doesn't stir the collector."""
    report = a_report()
    again = msgspec.structs.replace(report, rev=2, ts=5.0)
    assert targets_of([report], None) == targets_of([again], None)
