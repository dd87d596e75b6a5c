"""The collector on a real container of a real engine, compared with the cgroup's own files."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from services.stats.adapters.cgroup import CgroupTree
from services.stats.adapters.filesystem import StatvfsFilesystems
from services.stats.adapters.procfs import Procfs
from services.stats.core.cgroup_paths import parse_proc_cgroup, path_of_parent
from services.stats.core.model import ContainerTarget, PodTarget, Targets
from services.stats.handlers.collect import Collector
from shared.kube.times import parse_rfc3339
from shared.runtime.clock import SystemClock
from tests.support.eventually import eventually

IMAGE = "busybox:1.36"
MEMORY_LIMIT = 64 << 20


@pytest.fixture
def engine() -> Iterator[Any]:
    """The engine's client; a missing engine fails where CI is set and else skips."""
    try:
        client = docker.from_env(timeout=30)
        client.ping()
    except docker.errors.DockerException as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no Docker Engine: {error}")
    yield client
    client.close()


@pytest.fixture
def parent(engine: Any) -> Iterator[str]:
    """A pod's cgroup as Docker's CgroupParent, removed at the end (the engine leaves it behind)."""
    uid = uuid.uuid4()
    slice_name = f"kubepods-burstable-pod{str(uid).replace('-', '_')}.slice"
    systemd = engine.info()["CgroupDriver"] == "systemd"
    yield slice_name if systemd else f"/kubepods/burstable/pod{uid}"
    for directory in Path("/sys/fs/cgroup").glob(f"*/kubepods/burstable/pod{uid}"):
        directory.rmdir()


@pytest.fixture
def container(engine: Any, parent: str) -> Iterator[Any]:
    """Computes for a moment, then sleeps."""
    script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; exec sleep 600"
    container = engine.containers.run(
        IMAGE, ["sh", "-c", script], detach=True, cgroup_parent=parent, mem_limit=MEMORY_LIMIT
    )
    try:
        eventually(lambda: container.logs() == b"done\n", within=30)
        container.reload()
        yield container
    finally:
        container.remove(force=True)


def cpu_ns(pid: int) -> int:
    """The container's CPU time by the kernel's own word, without the code under test but for the path."""
    path = parse_proc_cgroup(Path(f"/proc/{pid}/cgroup").read_text())
    assert path is not None
    v1 = Path(f"/sys/fs/cgroup/cpuacct{path.cpu}/cpuacct.usage")
    if v1.exists():
        return int(v1.read_text())
    return int(Path(f"/sys/fs/cgroup{path.cpu}/cpu.stat").read_text().split()[1]) * 1000


@pytest.mark.docker
def test_a_real_containers_usage_is_what_its_cgroup_says(container: Any, parent: str, tmp_path: Path) -> None:
    """CPU between a reading before and one after; memory within the limit; gone after the container is."""
    state = container.attrs["State"]
    tree = CgroupTree()
    collector = Collector(
        node_name="n",
        root_dir=str(tmp_path),
        cgroups=tree,
        processes=Procfs(),
        filesystems=StatvfsFilesystems(),
        clock=SystemClock(),
    )
    started_at = parse_rfc3339(state["StartedAt"])
    target = ContainerTarget(id=container.id, name="busy", pid=state["Pid"], started_at=started_at)
    # The container stands for its own sandbox here: it has a network of its own.
    pod = PodTarget(
        uid="u",
        name="p",
        namespace="default",
        start_time=started_at,
        cgroup=path_of_parent(parent),
        sandbox_id=container.id,
        sandbox_pid=state["Pid"],
        containers=(target,),
    )
    before = cpu_ns(state["Pid"])
    collector.set_targets(Targets(pods=(pod,)))
    after = cpu_ns(state["Pid"])
    told = json.loads(collector.summary())["pods"][0]
    stats = told["containers"][0]

    # v2 counts in whole microseconds, which both readings share.
    assert 0 < before <= stats["cpu"]["usageCoreNanoSeconds"] <= after
    assert told["cpu"]["usageCoreNanoSeconds"] >= before
    memory = stats["memory"]
    assert 0 < memory["workingSetBytes"] <= memory["usageBytes"] <= MEMORY_LIMIT
    assert memory["availableBytes"] == MEMORY_LIMIT - memory["workingSetBytes"]
    assert told["memory"]["usageBytes"] >= memory["workingSetBytes"] // 2
    assert [one["name"] for one in told["network"]["interfaces"]] == ["eth0"]

    container.kill()
    container.wait(timeout=30)

    def is_gone() -> bool:
        collector.sample()
        return b'"pods":[]' in collector.summary()

    assert eventually(is_gone, within=10)
    collector.close()
    tree.close()
