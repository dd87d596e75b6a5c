"""Texts of cgroup files -> numbers."""

from __future__ import annotations

from services.stats.core.model import MemoryInfo, MemoryUsage
from services.stats.core.parse_cgroup import (
    find_counter,
    node_memory,
    parse_cpu_v1,
    parse_cpu_v2,
    parse_limit,
    parse_memory_v1,
    parse_memory_v2,
)

STAT_V1 = (
    b"cache 500\nrss 7\nswap 0\npgfault 11\npgmajfault 2\ninactive_file 40\n"
    b"hierarchical_memory_limit 64\ntotal_rss 70\ntotal_pgfault 110\ntotal_inactive_file 400\n"
)
STAT_V2 = b"anon 70\nfile 500\ninactive_anon 1\ninactive_file 400\npgfault 11\npgmajfault 2\n"
INFO = MemoryInfo(total=10_000, free=4_000, anonymous=900, inactive_file=1_500)


def test_a_counter_is_found_by_its_whole_key() -> None:
    """`rss` is not `total_rss`, and the first and the last line count too."""
    assert find_counter(STAT_V1, b"cache") == 500
    assert find_counter(STAT_V1, b"rss") == 7
    assert find_counter(STAT_V1, b"total_inactive_file") == 400
    assert find_counter(b"a 1\nb 2", b"b") == 2


def test_a_counter_that_is_missing_or_no_number_is_none() -> None:
    assert find_counter(STAT_V1, b"anon") is None
    assert find_counter(b"", b"anon") is None
    assert find_counter(b"anon x\n", b"anon") is None


def test_cpu_is_nanoseconds_on_v1_and_microseconds_on_v2() -> None:
    assert parse_cpu_v1(b"38251536525\n") == 38_251_536_525
    assert parse_cpu_v2(b"usage_usec 37084542\nuser_usec 1\n") == 37_084_542_000
    assert parse_cpu_v1(b"") is None
    assert parse_cpu_v2(b"user_usec 1\n") is None


def test_unlimited_is_max_on_v2_and_anything_beyond_2_to_the_62_on_v1() -> None:
    """The kernel rounds its "no limit" down to a page, so equality with 2^63 would miss it."""
    assert parse_limit(b"max\n") is None
    assert parse_limit(b"9223372036854771712\n") is None
    assert parse_limit(b"9223372036854710272\n") is None
    assert parse_limit(b"67108864\n") == 67_108_864


def test_v1_working_set_subtracts_the_inactive_files_of_nested_cgroups_too() -> None:
    """The hierarchical keys count, but the faults are the cgroup's own (cAdvisor 0.60)."""
    assert parse_memory_v1(b"1000\n", STAT_V1, 2_000) == MemoryUsage(
        usage=1000, working_set=600, rss=70, page_faults=11, major_page_faults=2, limit=2_000
    )


def test_v2_rss_is_anon() -> None:
    assert parse_memory_v2(b"1000\n", STAT_V2, None) == MemoryUsage(
        usage=1000, working_set=600, rss=70, page_faults=11, major_page_faults=2, limit=None
    )


def test_the_working_set_and_what_is_available_never_go_below_zero() -> None:
    """The files aren't read at the same instant."""
    memory = parse_memory_v2(b"300\n", STAT_V2, 0)
    assert memory is not None
    assert (memory.working_set, memory.available) == (0, 0)
    above = parse_memory_v2(b"1000\n", STAT_V2, 500)
    assert above is not None
    assert above.available == 0


def test_available_is_what_the_limit_leaves_and_absent_without_a_limit() -> None:
    limited = parse_memory_v2(b"1000\n", STAT_V2, 2_000)
    unlimited = parse_memory_v2(b"1000\n", STAT_V2, None)
    assert limited is not None and unlimited is not None
    assert limited.available == 1_400
    assert unlimited.available is None


def test_the_nodes_limit_is_memtotal() -> None:
    """Where the root cgroup accounts itself, its numbers count."""
    root = parse_memory_v1(b"1000\n", STAT_V1, None)
    assert node_memory(root, STAT_V1, INFO) == MemoryUsage(
        usage=1000, working_set=600, rss=70, page_faults=11, major_page_faults=2, limit=10_000
    )


def test_the_v2_root_takes_its_usage_from_meminfo_and_the_rest_from_memory_stat() -> None:
    """It has no memory.current."""
    assert node_memory(None, STAT_V2, INFO) == MemoryUsage(
        usage=6_000, working_set=5_600, rss=70, page_faults=11, major_page_faults=2, limit=10_000
    )


def test_without_a_memory_controller_the_node_is_told_by_meminfo_alone() -> None:
    assert node_memory(None, b"", INFO) == MemoryUsage(usage=6_000, working_set=4_500, rss=900, limit=10_000)
