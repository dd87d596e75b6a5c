"""The API server as whoever uses it sees it: `shared.apiserver.client` is the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Protocol

from shared.apiserver.errors import Answer

if TYPE_CHECKING:
    from shared.apiserver.client import WatchEvent

STRATEGIC = "application/strategic-merge-patch+json"
"""Content type of a patch that merges lists by their keys."""


class Requests(Protocol):
    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        content_type: str = "application/json",
        within: float = 30.0,
    ) -> Answer:
        """Ask once. Raises Unreachable when nothing was answered within so many seconds; whatever code was answered is
        an Answer."""
        ...


class ApiServer(Requests, Protocol):
    def watch(self, path: str, query: Mapping[str, str], *, silence: float = 360.0) -> AsyncIterator[WatchEvent]:
        """Until the server ends it. Raises ApiError (410: list anew), Unreachable."""
        ...
