"""The outer layer of paths: what is served at all, decided before anybody is asked who they are.

kubelet (net/http's mux around go-restful): an unknown path is 404 and an unclean one 301 without credentials;
inside a known service authentication comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

HEALTH_PATHS = ("/healthz", "/healthz/ping", "/healthz/log", "/healthz/syncloop")
"""Served by plain handlers: any method, no further path, no trailing slash."""
_SERVICES = ("/pods", "/containerLogs", "/run", "/exec", "/attach", "/portForward", "/stats", "/podbus")
"""With all that is below. /stats without a slash answers here, where the kubelet redirects."""
_SLASH_ONLY = ("/runningpods",)
"""Services whose root needs the slash: without it they redirect."""


@dataclass(frozen=True)
class Found:
    path: str
    """For the inner router: without a trailing slash."""


@dataclass(frozen=True)
class Moved:
    path: str
    """Where to, not quoted. The query stays."""


@dataclass(frozen=True)
class Unknown:
    pass


def match(path: str) -> Found | Moved | Unknown:
    """A decoded path -> what the outer layer makes of it."""
    clean = _clean(path)
    if clean in _SLASH_ONLY:
        return Moved(clean + "/")
    if clean != path:
        return Moved(clean)
    if path in HEALTH_PATHS:
        return Found(path)
    if any(path == root or path.startswith(root + "/") for root in _SERVICES + _SLASH_ONLY):
        return Found(path.rstrip("/"))
    return Unknown()


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
