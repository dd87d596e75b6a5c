"""May this identity do that? The local roles, and the texts of a refusal."""

from __future__ import annotations

from dataclasses import dataclass

ADMIN_GROUPS = frozenset({"podbus:admin", "system:masters"})
VIEW_GROUP = "podbus:view"
METRICS_GROUP = "podbus:metrics"
AUTHENTICATED = "system:authenticated"

_METRICS_PATHS = ("/metrics", "/stats", "/healthz")
_VIEW_PATHS = ("/pods", "/runningpods", "/containerLogs", "/podbus", *_METRICS_PATHS)
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
VERBS = frozenset(_VERBS.values())
_OWN_SUBRESOURCE = {
    "/stats": "stats",
    "/metrics": "metrics",
    "/logs": "log",
    "/checkpoint": "checkpoint",
    "/statusz": "statusz",
    "/flagz": "configz",
}
_FINE_GRAINED = {"/pods": "pods", "/runningpods": "pods", "/healthz": "healthz", "/configz": "configz"}


@dataclass(frozen=True)
class Identity:
    """Who asks: from a client certificate (CN, O) or a token."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What else the API server says of it, in the order of the keys."""


ANONYMOUS = Identity("system:anonymous", ("system:unauthenticated",))


def allowed(who: Identity, method: str, path: str) -> bool:
    """Admins everything; viewers and metrics readers only GET, and only below their paths. Exec, attach and
    port-forward by GET (WebSocket) are below none of these, so they need an admin."""
    groups = set(who.groups)
    if groups & ADMIN_GROUPS:
        return True
    if method != "GET":
        return False
    if VIEW_GROUP in groups and is_under(path, _VIEW_PATHS):
        return True
    return METRICS_GROUP in groups and is_under(path, _METRICS_PATHS)


def forbidden_text(who: Identity, method: str, path: str) -> str:
    """kubelet 1.36: the body of a 403, with the subresources that would have allowed it."""
    return (
        f"Forbidden (user={who.user}, verb={verb_of(method)}, resource=nodes,"
        f" subresource(s)=[{' '.join(subresources(path))}])\n"
    )


def failure_text(who: Identity, method: str, subresource: str) -> str:
    """kubelet: the body of a 500 when nobody could say whether it's allowed."""
    return f"Authorization error (user={who.user}, verb={verb_of(method)}, resource=nodes, subresource={subresource})"


def verb_of(method: str) -> str:
    """kubelet: HEAD, OPTIONS and unknown ones are no verb."""
    return _VERBS.get(method, "")


def subresources(path: str) -> tuple[str, ...]:
    """Of nodes, in the order in which they are asked; any one allows. kubelet 1.36 (fine-grained)."""
    for root, name in _OWN_SUBRESOURCE.items():
        if is_under(path, (root,)):
            return (name,)
    for root, name in _FINE_GRAINED.items():
        if is_under(path, (root,)):
            return (name, "proxy")
    return ("proxy",)


def is_under(path: str, roots: tuple[str, ...]) -> bool:
    """Whole segments: /metricsx is not below /metrics."""
    return any(path == root or path.startswith(root + "/") for root in roots)
