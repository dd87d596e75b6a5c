"""TokenReview and SubjectAccessReview: what an API server is asked, and what its answers mean."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, TypeVar

from services.api.core.access import AUTHENTICATED, Identity, verb_of

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105  a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CACHED_REVIEWS = 8192
LARGEST_CACHED = 10_000
"""Attributes of more characters are asked each time: a caller could fill the cache with them."""
_TRANSIENT = frozenset({429, 500, 502, 503, 504})
_STEPS, _FIRST_SECONDS, _FACTOR, _JITTER = 5, 0.5, 1.5, 0.2

V = TypeVar("V")


class UnusableAnswer(Exception):
    """Neither yes nor no; says why."""


def token_review(token: str) -> dict[str, Any]:
    return {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}}


def reviewed_identity(answer: Any) -> Identity | None:
    """Whose token it is, None = nobody's. Raises UnusableAnswer."""
    status = _status(answer)
    if status.get("authenticated") is not True:
        if error := status.get("error"):
            raise UnusableAnswer(str(error))
        return None
    user = status.get("user")
    if not isinstance(user, dict) or not isinstance(user.get("username"), str) or not user["username"]:
        raise UnusableAnswer("authenticated without a user name")
    groups = [str(group) for group in user.get("groups") or ()]
    if AUTHENTICATED not in groups:
        groups.append(AUTHENTICATED)
    extra = user.get("extra") or {}
    return Identity(
        user["username"],
        tuple(groups),
        str(user.get("uid") or ""),
        tuple((str(key), tuple(map(str, values or ()))) for key, values in sorted(extra.items())),
    )


def access_spec(who: Identity, method: str, subresource: str, node: str) -> dict[str, Any]:
    """May `who` do that with the node's subresource? kubelet: neither group nor namespace."""
    spec: dict[str, Any] = {
        "resourceAttributes": {
            "verb": verb_of(method),
            "version": "v1",
            "resource": "nodes",
            "subresource": subresource,
            "name": node,
        },
        "user": who.user,
        "groups": list(who.groups),
    }
    if who.uid:
        spec["uid"] = who.uid
    if who.extra:
        spec["extra"] = {key: list(values) for key, values in who.extra}
    return spec


def access_review(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": dict(spec)}


def reviewed_access(answer: Any) -> bool:
    """Raises UnusableAnswer."""
    status = _status(answer)
    allowed, denied = status.get("allowed") is True, status.get("denied") is True
    if allowed and denied:
        raise UnusableAnswer("both allowed and denied")
    return allowed


def is_transient(status: int) -> bool:
    """Whether an answer with this status is worth another try."""
    return status in _TRANSIENT


def retry_delays(chance: Callable[[], float]) -> list[float]:
    """Between five tries: 0.5 s, each next 1.5 times as long, and up to a fifth more; `chance` is from 0 to 1."""
    return [_FIRST_SECONDS * _FACTOR**step * (1 + _JITTER * chance()) for step in range(_STEPS - 1)]


class Kept(Generic[V]):
    """The last answers, each for its own time; the least used goes first."""

    def __init__(self, size: int = CACHED_REVIEWS) -> None:
        self._size = size
        self._kept: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: Hashable, now: float) -> tuple[V] | None:
        """In a tuple, as the answer may be None."""
        found = self._kept.get(key)
        if found is None:
            return None
        if found[0] <= now:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return (found[1],)

    def keep(self, key: Hashable, value: V, until: float) -> None:
        self._kept[key] = (until, value)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)


def _status(answer: Any) -> Mapping[str, Any]:
    status = answer.get("status") if isinstance(answer, dict) else None
    if not isinstance(status, dict):
        raise UnusableAnswer("an answer without status")
    return status
