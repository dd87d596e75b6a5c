"""The kernel log's records of kills for want of memory -> who was killed, and whether the whole node lacked it."""

from __future__ import annotations

import re

import msgspec

_ID = re.compile(r"[0-9a-f]{64}")


class OomKill(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    cgroup: str
    """Of the victim."""
    process: str
    pid: int
    is_system: bool
    """The node ran out of memory, and no cgroup reached its limit."""

    @property
    def containers(self) -> list[str]:
        """Ids of the containers that the victim was in: more than one where an engine runs in a container."""
        return _ID.findall(self.cgroup)


def parse_oom_kill(record: bytes) -> OomKill | None:
    """Linux 5.0 and later: `oom-kill:constraint=C,nodemask=..,oom_memcg=..,task_memcg=..,task=NAME,pid=N,uid=N`, with
    `global_oom` in place of oom_memcg. None for any other record."""
    _, found, text = record.decode("utf-8", "replace").partition("oom-kill:")
    where, has_victim, victim = text.partition("\n")[0].partition(",task_memcg=")
    # only the name may hold a comma, or an equals sign
    cgroup, has_task, task = victim.partition(",task=")
    process, has_pid, numbers = task.rpartition(",pid=")
    pid = numbers.partition(",")[0]
    if not (found and has_victim and has_task and has_pid and pid.isdigit()):
        return None
    return OomKill(cgroup=cgroup, process=process, pid=int(pid), is_system=where.endswith(",global_oom"))
