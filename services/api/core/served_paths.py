"""What a request's path is called in the kubelet's metrics: few names, whatever clients ask for."""

from __future__ import annotations

_KNOWN = frozenset(
    (
        *("attach", "checkpoint", "configz", "containerLogs", "debug", "exec", "flagz", "healthz", "logs", "pods"),
        *("podbus", "portForward", "run", "runningpods", "stats", "statusz"),
    )
)
_LONG_RUNNING = frozenset(("attach", "debug", "exec"))
_METRICS = frozenset(("cadvisor", "probes", "resource"))


def path_label(path: str) -> str:
    """kubelet (trimURLPath): the first part if it's known, `metrics/x`, else `other`."""
    first, _, rest = path.lstrip("/").partition("/")
    if first == "metrics":
        return f"metrics/{rest}" if rest in _METRICS else "metrics"
    return first if first in _KNOWN else "other"


def is_long_running(path: str) -> bool:
    """kubelet: exec, attach and debug; portForward is misspelt there and isn't."""
    return path.lstrip("/").partition("/")[0] in _LONG_RUNNING
