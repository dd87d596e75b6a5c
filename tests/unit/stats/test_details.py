"""The files of v1 and v2 say the same things in different words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from services.stats.core.details import Details, DeviceCounters, oom_kills, parse_details
from services.stats.core.model import Texts
from services.stats.core.parse_cgroup import parse_pressure

V1 = {
    "cpuacct.stat": b"user 7\nsystem 3\n",
    "cpu.stat": b"nr_periods 5\nnr_throttled 2\nthrottled_time 1500000000\nnr_bursts 0\nburst_time 0\n",
    "cpu.shares": b"2597\n",
    "cpu.cfs_quota_us": b"20000\n",
    "cpu.cfs_period_us": b"100000\n",
    "memory.stat": b"cache 1\npgfault 1\ntotal_cache 40\ntotal_mapped_file 20\ntotal_pgfault 9\ntotal_pgmajfault 2\n"
    b"total_inactive_file 10\ntotal_active_file 30\n",
    "memory.limit_in_bytes": b"67108864\n",
    "memory.memsw.limit_in_bytes": b"9223372036854771712\n",
    "memory.soft_limit_in_bytes": b"9223372036854771712\n",
    "memory.max_usage_in_bytes": b"900\n",
    "memory.failcnt": b"4\n",
    "memory.kmem.usage_in_bytes": b"55\n",
    "memory.oom_control": b"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
    "pids.current": b"6\n",
    "pids.max": b"max\n",
    "blkio.throttle.io_service_bytes_recursive": b"254:0 Read 10\n254:0 Write 20\n254:0 Sync 30\n254:0 Total 30\n"
    b"Total 30\n",
    "blkio.throttle.io_serviced_recursive": b"254:0 Read 1\n254:0 Write 2\n254:0 Total 3\nTotal 3\n",
}
V2 = {
    "cpu.stat": b"usage_usec 100000\nuser_usec 70000\nsystem_usec 30000\nnr_periods 5\nnr_throttled 2\n"
    b"throttled_usec 1500000\n",
    "cpu.weight": b"100\n",
    "cpu.max": b"20000 100000\n",
    "memory.stat": b"anon 5\nfile 40\nkernel 55\nfile_mapped 20\ninactive_file 10\nactive_file 30\n"
    b"pgfault 9\npgmajfault 2\n",
    "memory.max": b"67108864\n",
    "memory.swap.max": b"max\n",
    "memory.low": b"0\n",
    "memory.peak": b"900\n",
    "memory.events": b"low 0\nhigh 0\nmax 4\noom 3\noom_kill 3\noom_group_kill 0\n",
    "pids.current": b"6\n",
    "pids.max": b"max\n",
    "io.stat": b"254:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n253:0 \n",
}
SAID = Details(
    user_ns=70_000_000,
    system_ns=30_000_000,
    shares=2_597,
    quota=20_000,
    period=100_000,
    periods=5,
    throttled_periods=2,
    throttled_ns=1_500_000_000,
    memory_limit=67_108_864,
    cache=40,
    mapped_file=20,
    active_file=30,
    inactive_file=10,
    kernel=55,
    max_usage=900,
    failcnt=4,
    hierarchy_faults=9,
    hierarchy_major_faults=2,
    oom_kills=3,
    threads=6,
    devices=(DeviceCounters(device="254:0", read_bytes=10, write_bytes=20, reads=1, writes=2),),
)


@pytest.mark.parametrize(("version", "files"), [(1, V1), (2, V2)])
def test_both_versions_tell_cpu_memory_pids_and_io_alike(version: int, files: dict[str, bytes]) -> None:
    """Case 33."""
    texts = Texts(version=version, files=files)
    assert parse_details(texts) == SAID
    assert oom_kills(texts) == 3


@pytest.mark.parametrize(
    ("version", "files"),
    [(1, V1 | {"cpu.cfs_quota_us": b"-1\n"}), (2, V2 | {"cpu.max": b"max 100000\n"})],
)
def test_without_a_quota_nothing_is_throttled(version: int, files: dict[str, bytes]) -> None:
    """Case 26."""
    expected = replace(SAID, quota=None, periods=None, throttled_periods=None, throttled_ns=None)
    assert parse_details(Texts(version=version, files=files)) == expected


@pytest.mark.parametrize("version", [1, 2])
def test_what_a_kernel_lacks_is_not_told(version: int) -> None:
    """No 0 for what isn't measured; limits are 0 = none."""
    told = parse_details(Texts(version=version, files={}))
    assert (told.user_ns, told.cache, told.max_usage, told.threads, told.devices) == (None, None, None, None, ())
    assert (told.memory_limit, told.swap_limit, told.threads_max) == (0, 0, 0)


def test_pressure_is_read_with_and_without_its_second_line() -> None:
    """Case 36. Kernels before 5.13 have no "full" for the CPU; with psi=0 there is nothing to read."""
    some = b"some avg10=8.45 avg60=36.22 avg300=30.62 total=2500000\n"
    pair = parse_pressure(some + b"full avg10=1.00 avg60=0.00 avg300=0.00 total=7\n")
    assert pair is not None
    assert (pair.some.total, pair.some.avg10, pair.full.total) == (2_500_000, 8.45, 7)
    alone = parse_pressure(some)
    assert alone is not None and alone.full.total == 0
    assert parse_pressure(b"") is None
    assert parse_pressure(b"some avg10=x\n") is None
