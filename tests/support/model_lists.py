"""The lists and watches of an API server in memory: versions, history, bookmarks, 410; it may go away and come back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from shared.apiserver.client import WatchEvent
from shared.apiserver.errors import Answer, Unreachable, error_of


class ModelLists:
    """shared.apiserver.server.ApiServer."""

    def __init__(self) -> None:
        self.version = 1
        self.objects: dict[str, dict[str, Any]] = {}
        """Path of the object -> object."""
        self.is_down = False
        self.refusal = 0
        """The code that every request gets; 0 = an answer."""
        self.requests: list[str] = []
        self.answers: dict[str, Any] = {}
        """Path of a POST -> what it gives back."""
        self.posted: list[tuple[str, Any]] = []
        self._history: list[tuple[int, str, str, dict[str, Any]]] = []
        self._compacted = 0
        self._news = asyncio.Event()
        self._connections = 0

    # -- what others do to the objects --------------------------------------------------------------------------

    def put(self, path: str, body: dict[str, Any]) -> None:
        kind = "MODIFIED" if path in self.objects else "ADDED"
        self._happen(kind, path, body)
        self.objects[path] = self._history[-1][3]

    def delete(self, path: str) -> None:
        self._happen("DELETED", path, self.objects.pop(path))

    def bookmark(self) -> None:
        self._happen("BOOKMARK", "", {"metadata": {}})

    def compact(self) -> None:
        """Whoever asks for an older version than now is told 410."""
        self._compacted = self.version
        self._history.clear()

    def drop_connections(self) -> None:
        self._connections += 1
        self._wake()

    def go_down(self) -> None:
        self.is_down = True
        self.drop_connections()

    def come_back(self) -> None:
        self.is_down = False

    # -- what the client asks -----------------------------------------------------------------------------------

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
        self._asked(f"{method} {path}")
        if method == "POST":
            self.posted.append((path, json.loads(body)))
            return Answer(201, {}, json.dumps(self.answers[path]).encode())
        items = self._selected(path, query or {})
        page = {"metadata": {"resourceVersion": str(self.version)}, "items": items}
        return Answer(200, {}, json.dumps(page).encode())

    async def watch(self, path: str, query: Mapping[str, str], *, silence: float = 360.0) -> AsyncIterator[WatchEvent]:
        self._asked(f"WATCH {path}")
        seen, connection = int(query["resourceVersion"]), self._connections
        while True:
            if self._connections != connection:
                raise Unreachable("the connection broke")
            if seen < self._compacted:
                raise error_of(410, b'{"code":410,"reason":"Expired","message":"too old resource version"}')
            news = self._news
            for version, kind, place, body in [one for one in self._history if one[0] > seen]:
                seen = version
                if kind == "BOOKMARK" or self._is_of(path, query, place):
                    yield WatchEvent(kind, msgspec.Raw(json.dumps(body).encode()))
            if news is self._news:
                await news.wait()

    def count(self, what: str) -> int:
        return sum(one.startswith(what) for one in self.requests)

    def _asked(self, what: str) -> None:
        self.requests.append(what)
        if self.is_down:
            raise Unreachable("connection refused", is_lasting=True)
        if self.refusal:
            raise error_of(self.refusal, b'{"reason":"Forbidden","message":"no relationship found"}')

    def _selected(self, path: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
        return [body for place, body in self.objects.items() if self._is_of(path, query, place)]

    def _is_of(self, path: str, query: Mapping[str, str], place: str) -> bool:
        """A collection of a namespace holds its own; one of the whole cluster holds all of its kind."""
        collection, name = place.rsplit("/", 1)
        wanted = query.get("fieldSelector", "")
        if wanted.startswith("metadata.name=") and wanted.removeprefix("metadata.name=") != name:
            return False
        return path == collection or ("/namespaces/" not in path and collection.endswith(path.rsplit("/", 1)[1]))

    def _happen(self, kind: str, path: str, body: dict[str, Any]) -> None:
        self.version += 1
        meta = {**body["metadata"], "resourceVersion": str(self.version)}
        self._history.append((self.version, kind, path, {**body, "metadata": meta}))
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
