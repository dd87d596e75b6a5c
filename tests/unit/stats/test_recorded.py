"""Trees in both versions' layouts, recorded and read again: nothing is lost on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.stats.adapters.cgroup import CgroupTree
from services.stats.adapters.cgroup_files import LIVE_V1, LIVE_V2, SPEC_V1, SPEC_V2
from services.stats.core.details import parse_details
from services.stats.core.model import CgroupPath
from tests.support.record_stats import record
from tests.unit.stats.test_details import SAID, V1, V2

PATHS = {1: "/kubepods/podu-1/c1", 2: "/kubepods.slice/kubepods-podu_1.slice/docker-c1.scope"}


def lay_out(root: Path, version: int) -> None:
    """A node's trees by hand: one process in one cgroup."""
    listed = (
        (*LIVE_V1, *SPEC_V1, ("memory", "memory.stat")) if version == 1 else (*LIVE_V2, *SPEC_V2, ("", "memory.stat"))
    )
    texts = V1 if version == 1 else V2
    counters = (
        {"cpuacct.usage": b"5\n", "memory.usage_in_bytes": b"100\n"} if version == 1 else {"memory.current": b"100\n"}
    )
    places = {name: controller for controller, name in listed}
    places |= {"cpuacct.usage": "cpuacct", "memory.usage_in_bytes": "memory", "memory.current": ""}
    for name, text in (texts | counters).items():
        file = root / "sys" / places[name] / PATHS[version].lstrip("/") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)
    if version == 2:
        (root / "sys/cgroup.controllers").write_text("cpu memory pids io\n")
    lines = [f"4:{one}:{PATHS[1]}" for one in ("cpu", "cpuacct", "memory", "pids", "blkio")]
    process = root / "proc/41"
    process.mkdir(parents=True)
    (process / "cgroup").write_text("\n".join(lines) + "\n" if version == 1 else f"0::{PATHS[2]}\n")


@pytest.mark.parametrize("version", [1, 2])
def test_a_recorded_tree_reads_as_the_node_did(tmp_path: Path, version: int) -> None:
    lay_out(tmp_path, version)
    count = record(tmp_path / "recorded", [41], tmp_path / "sys", tmp_path / "proc")
    assert count > 10
    for root in (tmp_path / "sys", tmp_path / "recorded/cgroup"):
        tree = CgroupTree(root)
        assert tree.version == version
        cgroup = tree.open([CgroupPath.same(PATHS[version])])
        assert cgroup is not None
        usage = cgroup.read()
        texts = cgroup.texts()
        cgroup.close()
        assert usage is not None and usage.memory is not None
        assert (usage.memory.usage, usage.memory.working_set, usage.tasks) == (100, 90, 6)
        assert texts is not None
        assert parse_details(texts) == SAID
