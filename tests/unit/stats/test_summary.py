"""Samples -> the Summary, compared with what a kubelet printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from services.stats.core.model import (
    CgroupSample,
    CgroupUsage,
    ContainerHistory,
    ContainerTarget,
    DirectorySize,
    DiskShare,
    FilesystemSample,
    FilesystemUsage,
    Interface,
    MemoryUsage,
    NetworkSample,
    NodeHistory,
    PodHistory,
    PodTarget,
    Pressure,
    PressurePair,
    Pressures,
    SystemHistory,
    SystemTarget,
    TaskLimits,
    TaskSample,
    VolumeShare,
    VolumeTarget,
)
from services.stats.core.rates import NANOSECONDS
from services.stats.core.summary import build_summary, encode, pretty
from services.stats.core.summary_types import Summary
from shared.kube.times import parse_rfc3339

GOLDEN = (Path(__file__).parents[2] / "golden/wire/stats-summary.json").read_bytes()
AT = parse_rfc3339("2026-12-01T00:34:20Z")
FILESYSTEM = FilesystemUsage(capacity=1000, available=300, used=600, inodes=70, inodes_free=50)


def a_usage(cpu_ns: int | None = 5_000, **memory: Any) -> CgroupUsage:
    fields = {
        "usage": 900,
        "working_set": 700,
        "rss": 300,
        "page_faults": 4,
        "major_page_faults": 1,
        "limit": 2_000,
    }
    return CgroupUsage(cpu_ns=cpu_ns, memory=MemoryUsage(**(fields | memory)))


def a_window(**changes: Any) -> tuple[CgroupSample, ...]:
    return (
        CgroupSample(at=AT - 10, monotonic_ns=0, usage=a_usage(cpu_ns=0)),
        CgroupSample(at=AT + 0.9, monotonic_ns=10 * NANOSECONDS, usage=a_usage(**changes)),
    )


def a_network(*names: str) -> NetworkSample:
    return NetworkSample(
        at=AT,
        interfaces=tuple(
            Interface(name=name, rx_bytes=n, rx_errors=0, tx_bytes=2 * n, tx_errors=0)
            for n, name in enumerate(names, 1)
        ),
    )


def a_container(name: str = "web", started_at: float = AT - 60, **changes: Any) -> ContainerHistory:
    return ContainerHistory(
        target=ContainerTarget(id=f"{name}-{started_at}", name=name, pid=1, started_at=started_at),
        window=a_window(**changes),
    )


def a_pod(**changes: Any) -> PodHistory:
    fields: dict[str, Any] = {
        "target": PodTarget(uid="u-1", name="web-peer", namespace="default", start_time=AT - 61),
        "window": a_window(),
        "network": a_network("eth0"),
        "sandbox_runs": True,
        "containers": (a_container(),),
    }
    return PodHistory(**(fields | changes))


def a_share(used: int, inodes: int = 1) -> DiskShare:
    return DiskShare(size=DirectorySize(at=AT, used_bytes=used, inodes=inodes), filesystem=FILESYSTEM)


def a_whole_pod() -> PodHistory:
    """With disks: a layer of 10, logs of 20, a volume on the disk and one in memory."""
    container = replace(a_container(), rootfs=a_share(10), logs=a_share(20))
    newest = replace(a_window()[-1], usage=replace(a_usage(), tasks=3))
    return a_pod(
        window=(a_window()[0], newest),
        containers=(container,),
        volumes=(
            VolumeShare(target=VolumeTarget(name="disk", path="/v"), share=a_share(3)),
            VolumeShare(target=VolumeTarget(name="memory", path="/m", is_local=False), share=a_share(4)),
        ),
    )


def a_node(**changes: Any) -> NodeHistory:
    filesystem = FilesystemSample(at=AT, usage=FILESYSTEM, used_bytes=600)
    fields: dict[str, Any] = {
        "name": "peer",
        "boot_at": AT - 900,
        "memory_total": 10_000,
        "window": a_window(),
        "network": a_network("ifb0", "eth0"),
        "filesystem": filesystem,
        "images": filesystem,
        "tasks": TaskSample(at=AT, limits=TaskLimits(maximum=32_768, running=305)),
        "system": (
            SystemHistory(target=SystemTarget(name="pods", cgroup="/kubepods"), created_at=AT - 800, window=a_window()),
        ),
    }
    return NodeHistory(**(fields | changes))


def told(summary: Summary) -> Any:
    return json.loads(encode(summary))


def key_paths(value: Any, path: str = "") -> Iterator[str]:
    """Every key, in the order of its first appearance, list elements folded together."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield f"{path}.{key}"
            yield from key_paths(child, f"{path}.{key}")
    elif isinstance(value, list):
        for child in value:
            yield from key_paths(child, f"{path}[]")


def in_order(value: Any, without: frozenset[str] = frozenset()) -> list[str]:
    return [
        path
        for path in dict.fromkeys(key_paths(value))
        if not any(part.removesuffix("[]") in without for part in path.split("."))
    ]


def test_the_types_hold_the_kubelets_summary_byte_for_byte() -> None:
    """Key names, key order, integers and whole-second times: decoding and encoding the recording loses
    nothing."""
    summary = msgspec.json.decode(GOLDEN, type=Summary)
    assert encode(summary, indent=True) == GOLDEN


def test_what_is_measured_has_the_kubelets_keys_in_the_kubelets_order() -> None:
    """All that the recording has, and not one key more."""
    assert in_order(told(build_summary(a_node(), [a_whole_pod()]))) == in_order(json.loads(GOLDEN))


def test_ephemeral_storage_is_layers_logs_and_local_volumes() -> None:
    """The recorded sums: logs count by bytes and not by inodes, a volume in memory not at all."""
    pod = told(build_summary(a_node(), [a_whole_pod()]))["pods"][0]
    assert pod["ephemeral-storage"]["usedBytes"] == 10 + 20 + 3
    assert pod["ephemeral-storage"]["inodesUsed"] == 1 + 1
    assert [(one["name"], one["usedBytes"]) for one in pod["volume"]] == [("disk", 3), ("memory", 4)]
    assert pod["containers"][0]["rootfs"]["inodesUsed"] == 1
    assert pod["containers"][0]["logs"]["inodesUsed"] == 70 - 50, "cAdvisor: of the whole file system"


def test_swap_and_pressure_are_told_where_the_kernel_accounts_them() -> None:
    """Case 34: absent without the file, 0 with a 0; available only below a limit."""
    assert "swap" not in told(build_summary(a_node(), [a_pod()]))["pods"][0]
    pressed = Pressure(avg10=1.5, avg60=0.0, avg300=0.0, total=2_500_000)
    pair = PressurePair(some=pressed, full=pressed)
    usage = replace(a_usage(swap=0), swap_limit=9, pressure=Pressures(cpu=pair, io=pair))
    window = (CgroupSample(at=AT, monotonic_ns=0, usage=usage),)
    pod = told(build_summary(a_node(), [a_pod(window=window)]))["pods"][0]
    assert pod["swap"] == {"time": "2026-12-01T00:34:20Z", "swapAvailableBytes": 9, "swapUsageBytes": 0}
    assert pod["cpu"]["psi"]["some"] == {"total": 2_500_000, "avg10": 1.5, "avg60": 0.0, "avg300": 0.0}
    assert "psi" not in pod["memory"]
    assert pod["io"]["psi"].keys() == {"full", "some"}


def test_indentation_is_one_space_and_nothing_follows_the_last_brace() -> None:
    assert pretty(b'{"a":[1,{}],"b":[]}') == b'{\n "a": [\n  1,\n  {}\n ],\n "b": []\n}'


def test_times_are_the_samples_cut_to_whole_seconds() -> None:
    node = told(build_summary(a_node(), []))["node"]
    assert node["cpu"]["time"] == node["memory"]["time"] == "2026-12-01T00:34:20Z"
    assert node["startTime"] == "2026-12-01T00:19:20Z"


def test_an_unknown_boot_time_is_null() -> None:
    """kubelet 1.36: metav1.Time marshals zero to null."""
    assert told(build_summary(a_node(boot_at=None), []))["node"]["startTime"] is None


def test_no_pods_is_an_empty_array() -> None:
    assert encode(build_summary(a_node(), [])).endswith(b'"pods":[]}')


def test_only_cpu_and_memory_has_nothing_else() -> None:
    """kubelet 1.36: no network, fs, runtime, rlimit, volume or ephemeral-storage; start times stay."""
    summary = told(build_summary(a_node(), [a_pod()], only_cpu_and_memory=True))
    assert list(summary["node"]) == ["nodeName", "systemContainers", "startTime", "cpu", "memory"]
    assert list(summary["pods"][0]) == ["podRef", "startTime", "containers", "cpu", "memory"]
    assert list(summary["pods"][0]["containers"][0]) == ["name", "startTime", "cpu", "memory"]


def test_what_was_not_measured_is_absent_and_never_zero() -> None:
    bare = NodeHistory(name="peer", boot_at=AT)
    assert list(told(build_summary(bare, []))["node"]) == ["nodeName", "startTime"]
    usage = CgroupUsage(cpu_ns=7, memory=None)
    fresh = (CgroupSample(at=AT, monotonic_ns=0, usage=usage),)
    node = told(build_summary(a_node(window=fresh), []))["node"]
    assert node["cpu"] == {"time": "2026-12-01T00:34:20Z", "usageCoreNanoSeconds": 7}
    assert "memory" not in node


def test_a_measured_zero_is_told() -> None:
    """An idle container's rate and its major faults are numbers, not unknowns."""
    container = a_container(cpu_ns=0, major_page_faults=0)
    stats = told(build_summary(a_node(), [a_pod(containers=(container,))]))["pods"][0]["containers"][0]
    assert stats["cpu"]["usageNanoCores"] == 0
    assert stats["memory"]["majorPageFaults"] == 0


def test_an_unlimited_container_has_no_available_bytes() -> None:
    """Case 3."""
    limited, unlimited = a_container("a"), a_container("b", limit=None)
    pods = [a_pod(containers=(limited, unlimited))]
    stats = told(build_summary(a_node(), pods))["pods"][0]["containers"]
    assert [one["memory"].get("availableBytes") for one in stats] == [1_300, None]


@pytest.mark.parametrize(
    ("cgroup_limit", "allocatable", "available"),
    [(2_000, 9_000, 1_300), (None, 9_000, 8_300), (None, None, 9_300)],
)
def test_all_pods_together_always_have_available_bytes(
    cgroup_limit: int | None, allocatable: int | None, available: int
) -> None:
    """The eviction manager observes allocatable memory there: the cgroup's limit, else allocatable, else
    MemTotal."""
    system = SystemHistory(
        target=SystemTarget(name="pods", cgroup="/kubepods", memory_limit=allocatable),
        created_at=None,
        window=a_window(limit=cgroup_limit),
    )
    stats = told(build_summary(a_node(system=(system,)), []))["node"]["systemContainers"][0]
    assert stats["memory"]["availableBytes"] == available
    assert stats["startTime"] is None


def test_a_system_cgroup_that_does_not_exist_is_not_told() -> None:
    system = SystemHistory(target=SystemTarget(name="pods", cgroup="/x"), created_at=None, window=())
    assert "systemContainers" not in told(build_summary(a_node(system=(system,)), []))["node"]


def test_the_inline_interface_is_the_one_named_eth0() -> None:
    """kubelet 1.36: by this very name; without it the name is empty and only the list is told."""
    with_eth0 = told(build_summary(a_node(), []))["node"]["network"]
    assert (with_eth0["name"], with_eth0["rxBytes"], with_eth0["txBytes"]) == ("eth0", 2, 4)
    without = told(build_summary(a_node(network=a_network("ens3")), []))["node"]["network"]
    assert list(without) == ["time", "name", "interfaces"]
    assert without["name"] == ""


def test_a_pod_without_a_start_time_is_not_told_yet() -> None:
    pod = a_pod(target=PodTarget(uid="u", name="n", namespace="ns"))
    assert told(build_summary(a_node(), [pod]))["pods"] == []


def test_a_pod_of_which_nothing_runs_is_not_told_although_its_cgroup_is_there() -> None:
    assert told(build_summary(a_node(), [a_pod(containers=(), sandbox_runs=False)]))["pods"] == []


def test_a_pod_whose_sandbox_alone_runs_is_told_without_containers() -> None:
    assert told(build_summary(a_node(), [a_pod(containers=())]))["pods"][0]["containers"] == []


def test_of_two_instances_of_a_container_the_newest_is_told_in_the_first_ones_place() -> None:
    old, side, new = a_container("web", AT - 60), a_container("side"), a_container("web", AT - 5)
    stats = told(build_summary(a_node(), [a_pod(containers=(old, side, new))]))["pods"][0]["containers"]
    assert [(one["name"], one["startTime"]) for one in stats] == [
        ("web", "2026-12-01T00:34:15Z"),
        ("side", "2026-12-01T00:33:20Z"),
    ]


def test_a_container_without_a_cgroup_or_without_any_memory_is_not_told() -> None:
    """A zero there makes metrics-server drop the whole pod (kubernetes#103368)."""
    gone = ContainerHistory(target=ContainerTarget(id="g", name="gone", pid=1, started_at=AT), window=())
    empty = a_container("empty", usage=0, working_set=0, rss=0)
    stats = told(build_summary(a_node(), [a_pod(containers=(gone, empty, a_container()))]))
    assert [one["name"] for one in stats["pods"][0]["containers"]] == ["web"]


def test_images_never_use_more_than_their_filesystem_holds() -> None:
    """Shared layers count repeatedly in the sum of sizes."""
    images = FilesystemSample(at=AT, usage=FILESYSTEM, used_bytes=5_000)
    runtime = told(build_summary(a_node(images=images), []))["node"]["runtime"]
    assert runtime["imageFs"]["usedBytes"] == 1000
    unknown = FilesystemSample(at=AT, usage=FILESYSTEM, used_bytes=None)
    runtime = told(build_summary(a_node(images=unknown), []))["node"]["runtime"]
    assert "usedBytes" not in runtime["imageFs"]
