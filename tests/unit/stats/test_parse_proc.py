"""Texts of /proc files -> facts."""

from __future__ import annotations

from services.stats.core.model import FilesystemUsage, Interface, MemoryInfo, TaskLimits
from services.stats.core.parse_proc import (
    parse_boot_time,
    parse_cpu_total,
    parse_meminfo,
    parse_net_dev,
    parse_statvfs,
    parse_task_limits,
)

HEAD = (
    "Inter-|   Receive                          |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast"
    "|bytes    packets errs drop fifo colls carrier compressed\n"
)


def test_the_nodes_own_plumbing_is_not_an_interface() -> None:
    """Case 38: lo, veth*, docker* and nerdctl* are left out, the kernel's order stays."""
    lines = "".join(
        f"{name}: 1 0 2 0 0 0 0 0 3 0 4 0 0 0 0 0\n"
        for name in ("lo", "veth1a2b", "docker0", "nerdctl1", "eth0", "cali1")
    )
    assert [one.name for one in parse_net_dev(HEAD + lines)] == ["eth0", "cali1"]


def test_what_is_told_comes_from_its_columns() -> None:
    text = HEAD + "  eth0: 11 12 13 14 15 16 17 18 21 22 23 24 25 26 27 28\n"
    assert parse_net_dev(text) == (
        Interface(
            name="eth0",
            rx_bytes=11,
            rx_packets=12,
            rx_errors=13,
            rx_dropped=14,
            tx_bytes=21,
            tx_packets=22,
            tx_errors=23,
            tx_dropped=24,
        ),
    )


def test_a_number_may_touch_the_colon_and_a_name_may_hold_one() -> None:
    """Old kernels print wide counters without a blank; an alias is `eth0:1`."""
    text = HEAD + "eth0:536211687 1 0 0 0 0 0 0 5 0 0 0 0 0 0 0\neth0:1: 2 1 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n"
    assert [(one.name, one.rx_bytes) for one in parse_net_dev(text)] == [("eth0", 536_211_687), ("eth0:1", 2)]


def test_lines_that_are_no_interface_are_skipped() -> None:
    assert parse_net_dev(HEAD + "eth0: 1 2 3\nnonsense\n") == ()
    assert parse_net_dev("") == ()


def test_meminfo_is_in_bytes() -> None:
    text = "MemTotal: 100 kB\nMemFree:  40 kB\nInactive(file): 7 kB\nAnonPages: 9 kB\nHugePages_Total: 0\n"
    assert parse_meminfo(text) == MemoryInfo(total=102_400, free=40_960, anonymous=9_216, inactive_file=7_168)
    assert parse_meminfo("MemTotal: 100 kB\n") is None


def test_boot_time_is_btime() -> None:
    assert parse_boot_time("cpu 1 2\nbtime 1796085376\nprocesses 3\n") == 1_796_085_376.0
    assert parse_boot_time("cpu 1 2\n") is None


def test_busy_time_leaves_out_idle_iowait_and_guest() -> None:
    """Guest time is inside user time already."""
    text = "cpu  1 2 4 1000 2000 8 16 32 4000 8000\ncpu0 1 2 4\n"
    assert parse_cpu_total(text, 100) == 63 * 10_000_000
    assert parse_cpu_total("intr 1", 100) is None


def test_tasks_are_bounded_by_the_smaller_of_two_limits() -> None:
    """kubelet 1.36: pid_max and threads-max; what runs is behind the slash of loadavg."""
    assert parse_task_limits("32768\n", "192726\n", "0.00 0.02 0.00 1/305 4437\n") == TaskLimits(
        maximum=32_768, running=305
    )
    assert parse_task_limits("4194304\n", "192726\n", "0 0 0 1/7 1\n") == TaskLimits(maximum=192_726, running=7)
    assert parse_task_limits("", "1", "") is None


def test_used_is_capacity_without_free_and_available_leaves_out_roots_reserve() -> None:
    assert parse_statvfs(fragment_size=10, blocks=100, free=40, available=30, files=7, files_free=5) == FilesystemUsage(
        capacity=1000, available=300, used=600, inodes=7, inodes_free=5
    )
