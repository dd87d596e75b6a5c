"""The /proc adapter on a recorded tree."""

from __future__ import annotations

from pathlib import Path

from services.stats.adapters.filesystem import StatvfsFilesystems
from services.stats.adapters.procfs import Procfs
from services.stats.core.model import TaskLimits

PROC = Procfs(Path(__file__).parents[2] / "fixtures/stats/v1/proc")
NOWHERE = Procfs(Path("/nonexistent"))


def test_a_sandbox_has_its_own_interface_and_the_node_has_its() -> None:
    (eth0,) = PROC.interfaces(9857) or ()
    assert (eth0.name, eth0.rx_bytes, eth0.rx_errors, eth0.tx_bytes) == ("eth0", 736, 0, 0)
    assert [one.name for one in PROC.interfaces(1) or ()] == ["ifb0", "ifb1", "eth0"]


def test_a_process_that_is_gone_is_none() -> None:
    assert PROC.interfaces(4_000_000) is None
    assert PROC.cgroup_text(4_000_000) is None
    assert PROC.interfaces(0) is None
    assert PROC.cgroup_text(0) is None


def test_the_node_is_told_from_its_files() -> None:
    info = PROC.memory_info()
    assert info is not None and info.total == 24_683_584 * 1024
    assert PROC.boot_time() == 1_796_085_376.0
    limits = PROC.task_limits()
    assert isinstance(limits, TaskLimits) and limits.maximum == 32_768
    assert (PROC.cpu_total_ns() or 0) > 0


def test_without_proc_nothing_is_told() -> None:
    assert NOWHERE.memory_info() is None
    assert NOWHERE.boot_time() is None
    assert NOWHERE.cpu_total_ns() is None
    assert NOWHERE.task_limits() is None


def test_a_path_has_a_filesystem_and_a_missing_one_has_none(tmp_path: Path) -> None:
    usage = StatvfsFilesystems().usage(str(tmp_path))
    assert usage is not None and usage.capacity >= usage.used > 0
    assert StatvfsFilesystems().usage(str(tmp_path / "missing")) is None
