"""What the files of /proc and /etc say."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.status.adapters.node_probe import MachineProbe
from services.status.core.parse_machine import (
    Memory,
    parse_memory,
    parse_pretty_name,
    parse_tasks,
)
from shared.kube.node_labels import go_architecture

MEMINFO = """MemTotal:        1000 kB
MemFree:          200 kB
MemAvailable:     700 kB
Active(file):     300 kB
Inactive(file):   100 kB
SwapTotal:         50 kB
HugePages_Total:       0
"""


def test_available_memory_is_what_the_working_set_leaves() -> None:
    """kubelet: total - (used - inactive file pages); active file pages count as used."""
    assert parse_memory(MEMINFO) == Memory(total=1000 * 1024, available=300 * 1024, swap_total=50 * 1024)


@pytest.mark.parametrize("text", ["", "MemTotal: 1000 kB\n", MEMINFO.replace("Inactive(file)", "Inactive")])
def test_memory_that_is_not_told_is_unknown(text: str) -> None:
    assert parse_memory(text) is None


def test_tasks_are_bounded_by_the_smaller_limit() -> None:
    assert parse_tasks("4194304", "192000", "0.1 0.2 0.3 2/345 6789") == (192000, 345)
    assert parse_tasks("", "192000", "0.1 0.2 0.3 2/345 6789") is None
    assert parse_tasks("1", "2", "0.1") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('NAME=x\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n', "Debian GNU/Linux 12 (bookworm)"),
        ("PRETTY_NAME='A \"B\"'\n", 'A "B"'),
        ("PRETTY_NAME=Plain\n", "Plain"),
        ('PRETTY_NAME="open\n', '"open'),
        ("NAME=x\n", "Linux"),
        ("", "Linux"),
    ],
)
def test_the_os_image_is_the_pretty_name(text: str, name: str) -> None:
    assert parse_pretty_name(text) == name


@pytest.mark.parametrize(("machine", "go"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("loongarch64", "loongarch64")])
def test_architectures_have_gos_names(machine: str, go: str) -> None:
    assert go_architecture(machine) == go


def test_a_machine_that_tells_nothing_is_still_observed(tmp_path: Path) -> None:
    seen = MachineProbe(tmp_path / "gone", "192.0.2.9", root=tmp_path).observe("/nowhere")
    assert (seen.memory_total, seen.nodefs, seen.imagefs, seen.pids_max) == (None, None, None, None)
    assert (seen.address, seen.huge_pages, seen.system.machine_id) == ("192.0.2.9", {}, "")


def test_the_machine_id_and_the_huge_pages_are_read_where_they_lie(tmp_path: Path) -> None:
    pages = tmp_path / "sys/kernel/mm/hugepages/hugepages-2048kB"
    pages.mkdir(parents=True)
    (pages / "nr_hugepages").write_text("3\n")
    (tmp_path / "var/lib/dbus").mkdir(parents=True)
    (tmp_path / "var/lib/dbus/machine-id").write_text("abc\n")
    (tmp_path / "sys/class/dmi/id").mkdir(parents=True)
    (tmp_path / "sys/class/dmi/id/product_uuid").write_text("DEF\n")
    seen = MachineProbe(tmp_path, "", root=tmp_path).observe("")
    assert (seen.system.machine_id, seen.system.system_uuid) == ("abc", "DEF")
    assert seen.huge_pages == {2 << 20: 6 << 20}
    assert seen.nodefs is not None and seen.nodefs.capacity > 0
