"""Tokens of service accounts: what is asked for, and how long one is used. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shared.kube.times import parse_rfc3339

JsonObject = dict[str, Any]

_RENEWED_AT = 0.8
_OLDEST_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class IssuedToken:
    text: str = field(repr=False)
    issued_at: float
    expires_at: float

    def is_fresh(self, now: float) -> bool:
        """kubelet: renewed at 80 % of its life, and each day."""
        life = self.expires_at - self.issued_at
        return now - self.issued_at < min(life * _RENEWED_AT, _OLDEST_SECONDS)

    def is_valid(self, now: float) -> bool:
        return now < self.expires_at


def token_request(pod: JsonObject, audience: str, seconds: int) -> tuple[str, JsonObject]:
    """Path and body of a TokenRequest that is bound to the pod: the token dies with it."""
    meta, spec = pod["metadata"], pod["spec"]
    account = spec.get("serviceAccountName") or "default"
    bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    wanted: JsonObject = {"expirationSeconds": seconds, "boundObjectRef": bound}
    if audience:
        wanted["audiences"] = [audience]
    path = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{account}/token"
    return path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": wanted}


def issued_token(answer: JsonObject, now: float) -> IssuedToken:
    """Raises ValueError when the answer has none."""
    status = answer.get("status")
    text = status.get("token") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(text, str) or not text:
        raise ValueError("the answer has no token")
    return IssuedToken(text, now, parse_rfc3339(str(status.get("expirationTimestamp"))))
