"""Record what stats reads of one pod into a tree like those in tests/fixtures/stats.

    python -m tests.support.record_stats DIRECTORY CONTAINER_PID SANDBOX_PID

Both processes' cgroups, all above them, and the files of /proc; on cgroup v1 and v2 alike.
"""

from __future__ import annotations

import sys
from pathlib import Path

from services.stats.adapters.cgroup_files import LIVE_V1, LIVE_V2, SPEC_V1, SPEC_V2

_NODE = ("meminfo", "stat", "loadavg", "sys/kernel/pid_max", "sys/kernel/threads-max", "pressure/cpu")
_PROCESS = ("cgroup", "net/dev", "limits")
_COUNTERS_V1 = (("cpuacct", "cpuacct.usage"), ("memory", "memory.usage_in_bytes"), ("memory", "memory.stat"))
_COUNTERS_V2 = (("", "memory.current"), ("", "memory.stat"), ("", "cgroup.controllers"), ("", "cgroup.events"))


def record(target: Path, pids: list[int], mount: Path = Path("/sys/fs/cgroup"), proc: Path = Path("/proc")) -> int:
    """How many files were there to be copied."""
    is_v2 = (mount / "cgroup.controllers").exists()
    files = (*LIVE_V2, *SPEC_V2, *_COUNTERS_V2) if is_v2 else (*LIVE_V1, *SPEC_V1, *_COUNTERS_V1)
    copied = 0
    for pid in pids:
        paths: dict[str, str] = {}
        for line in (proc / f"{pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            paths |= dict.fromkeys(controllers.split(","), path)
        for controller, name in files:
            own = Path(paths.get(controller, "/").lstrip("/"))
            for level in (own, *own.parents):
                copied += _copy(mount / controller / level / name, target / "cgroup" / controller / level / name)
        for name in _PROCESS:
            copied += _copy(proc / str(pid) / name, target / "proc" / str(pid) / name)
    copied += _copy(proc / "1/net/dev", target / "proc/1/net/dev")
    return copied + sum(_copy(proc / name, target / "proc" / name) for name in _NODE)


def _copy(source: Path, target: Path) -> bool:
    try:
        text = source.read_bytes()
    except OSError:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text)
    return True


if __name__ == "__main__":
    directory, *numbers = sys.argv[1:]
    print(record(Path(directory), [int(number) for number in numbers]), "files")
