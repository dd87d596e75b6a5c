"""The outer layer of paths: what is served at all, decided before anybody is asked who they are.

kubelet (net/http's mux around go-restful): an unknown path is 404 and an unclean one 301 without credentials;
inside a known service authentication comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

HEALTH_PATHS = ("/healthz", "/healthz/ping", "/healthz/log", "/healthz/syncloop")
"""Served by plain handlers: any method, no further path, no trailing slash."""
METRICS_PATHS = ("/metrics", "/metrics/cadvisor", "/metrics/probes", "/metrics/resource")
"""Plain handlers, also on the read-only port."""
_SERVICES = ("/pods", "/stats", "/podbus")
"""With all that is below. /stats without a slash answers here, where the kubelet redirects."""
_WITHOUT_OWN = ("/pods", "/stats")
_DEBUG_SERVICES = ("/containerLogs", "/run", "/exec", "/attach", "/portForward", "/checkpoint")
_DEBUG_SLASHES = ("/runningpods", "/logs", "/debug/pprof")
"""Services whose root needs the slash: without it they redirect."""
_DEBUG_PLAIN = ("/configz", "/flagz", "/statusz", "/debug/flags/v")
_DISABLED = ("/containerLogs", "/run", "/exec", "/attach", "/portForward", *_DEBUG_SLASHES)
"""What says that it's disabled; the other debugging paths are then unknown."""

NO_DEBUGGING = "Debug endpoints are disabled.\n"
NO_SYSTEM_LOGS = "logs endpoint is disabled.\n"
NO_FLAGS = "flags endpoint is disabled.\n"
NO_PROFILING = "profiling endpoint is disabled.\n"
"""Always: the kubelet's are profiles of a Go program."""


@dataclass(frozen=True)
class Surface:
    """What a port serves."""

    debugging: bool = True
    """Logs, commands and the like; never on the read-only port."""
    system_logs: bool = True
    debug_flags: bool = True
    own: bool = True
    """/podbus; not on the read-only port, where nobody is asked for credentials."""


READ_ONLY = Surface(debugging=False, own=False)


@dataclass(frozen=True)
class Found:
    path: str
    """For the inner router: without a trailing slash."""


@dataclass(frozen=True)
class Moved:
    path: str
    """Where to, not quoted. The query stays."""


@dataclass(frozen=True)
class Disabled:
    """405 with this text, for those who may ask."""

    path: str
    text: str


@dataclass(frozen=True)
class Unknown:
    pass


FULL = Surface()


def match(path: str, surface: Surface = FULL) -> Found | Moved | Disabled | Unknown:
    """A decoded path -> what the outer layer makes of it."""
    clean = _clean(path)
    slashes = _DEBUG_SLASHES if surface.debugging else _DISABLED
    if clean in slashes:
        return Moved(clean + "/")
    if clean != path:
        return Moved(clean)
    if path in HEALTH_PATHS or path in METRICS_PATHS or (surface.debugging and path in _DEBUG_PLAIN):
        return _plain(path, surface)
    if not surface.debugging and _is_under(path, _DISABLED):
        return Disabled(path, NO_DEBUGGING)
    if surface.debugging and _is_under(path, ("/debug/pprof",)):
        return Disabled(path, NO_PROFILING)
    if surface.debugging and not surface.system_logs and _is_under(path, ("/logs",)):
        return Disabled(path, NO_SYSTEM_LOGS)
    services: tuple[str, ...] = _SERVICES if surface.own else _WITHOUT_OWN
    if surface.debugging:
        services += _DEBUG_SERVICES + _DEBUG_SLASHES
    if _is_under(path, services):
        # the slash tells a directory of log files from its parent's entry
        return Found(path if path.startswith("/logs/") else path.rstrip("/"))
    return Unknown()


def _plain(path: str, surface: Surface) -> Found | Disabled:
    if path == "/debug/flags/v" and not surface.debug_flags:
        return Disabled(path, NO_FLAGS)
    return Found(path)


def _is_under(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(root + "/") for root in roots)


def acceptable(accept: str) -> bool:
    """Whether JSON will do. kubelet (go-restful): only the exact type or */* counts; absent is */*."""
    if not accept:
        return True
    return any(part.partition(";")[0].strip() in ("application/json", "*/*") for part in accept.split(","))


def _clean(path: str) -> str:
    """Go's path.Clean with the trailing slash kept, as its mux does."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    clean = "/" + "/".join(parts)
    return clean + "/" if path.endswith("/") and parts else clean
