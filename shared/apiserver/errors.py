"""What can come of a request to the API server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True)
class Answer:
    code: int
    headers: Mapping[str, str]
    """Names in small letters."""
    body: bytes

    def check(self) -> Answer:
        """Itself. Raises ApiError for a code from 400 on."""
        if self.code >= 400:
            raise error_of(self.code, self.body, self.headers.get("retry-after", ""))
        return self


class Unreachable(Exception):
    """No answer: nobody listens, the connection broke, time ran out, or the kubeconfig can't be used now. Whether the
    server has done what it was asked isn't known."""

    def __init__(self, message: str, *, is_lasting: bool = False) -> None:
        super().__init__(message)
        self.is_lasting = is_lasting
        """Another try at once would meet the same: nobody listens, or a file or certificate is wrong."""


class ApiError(Exception):
    """The server's refusal."""

    def __init__(self, code: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{code} {reason}: {message}" if reason else f"{code}: {message}")
        self.code = code
        self.reason = reason
        """Kubernetes' word: NotFound, AlreadyExists, Conflict, Expired, ...; "" = the server gave none."""
        self.message = message
        self.retry_after = retry_after
        """Seconds that the server asks to wait."""

    @property
    def is_expired(self) -> bool:
        """The resourceVersion is too old: list anew."""
        return self.code == 410

    @property
    def is_transient(self) -> bool:
        """Worth another try as it is."""
        return self.code in (408, 429) or self.code >= 500


class _Status(msgspec.Struct, frozen=True):
    code: int = 0
    reason: str = ""
    message: str = ""


def error_of(code: int, body: bytes, retry_after: str = "") -> ApiError:
    """A refusal's body is a v1.Status, or a proxy's text."""
    try:
        status = msgspec.json.decode(body, type=_Status)
    except msgspec.MsgspecError:
        status = _Status(message=body[:200].decode(errors="replace").strip())
    seconds = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else None
    return ApiError(status.code or code, status.reason, status.message or f"status {code}", seconds)
