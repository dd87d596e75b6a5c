"""What is told of a node that ran out of memory."""

from __future__ import annotations

from shared.kube.oom import OomKill


def system_oom_message(kill: OomKill) -> str:
    """kubelet 1.36: the text of event SystemOOM."""
    return f"System OOM encountered, victim process: {kill.process}, pid: {kill.pid}"
