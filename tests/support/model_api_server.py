"""An API server in memory, as far as a node needs it: objects, versions, conflicts; it may be down or refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.apiserver.errors import Answer, Unreachable
from tests.support.merge_patch import merged

_KINDS = {"nodes": "Node", "leases": "Lease", "pods": "Pod", "events": "Event"}


@dataclass(frozen=True)
class Call:
    at: float
    method: str
    path: str
    body: Any = None


class ModelApiServer:
    """shared.apiserver.server.Requests."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._version = 0
        self.objects: dict[str, dict[str, Any]] = {}
        """Path -> object."""
        self.calls: list[Call] = []
        self.is_down = False
        self.refusals: dict[tuple[str, str], int] = {}
        """(method, beginning of the path) -> code."""
        self.drops: tuple[str, ...] = ()
        """Fields of nodeInfo that it doesn't know."""

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
        if self.is_down:
            self.calls.append(Call(self._time(), method, path))
            raise Unreachable("connection refused")
        return self.answer(method, path, body)

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        """What it says when it's up."""
        document: Any = json.loads(body) if body else None
        self.calls.append(Call(self._time(), method, path, document))
        for (refused, beginning), code in self.refusals.items():
            if method == refused and path.startswith(beginning):
                return _failure(code)
        do = {"GET": self._get, "POST": self._post, "PUT": self._put, "PATCH": self._patch, "DELETE": self._delete}[
            method
        ]
        return do(path, document)

    def count(self, method: str, part: str = "") -> int:
        return sum(call.method == method and part in call.path for call in self.calls)

    def _get(self, path: str, _: Any) -> Answer:
        found = self.objects.get(path)
        return _failure(404) if found is None else _answer(200, found)

    def _post(self, path: str, body: dict[str, Any]) -> Answer:
        place = f"{path}/{body['metadata']['name']}"
        if place in self.objects:
            return _failure(409)
        return _answer(201, self._store(place, body, uid=f"uid-{self._version}"))

    def _put(self, path: str, body: dict[str, Any]) -> Answer:
        before = self.objects.get(path)
        if before is None:
            return _failure(404)
        if body["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]:
            return _failure(409)
        return _answer(200, self._store(path, body))

    def _patch(self, path: str, body: dict[str, Any]) -> Answer:
        place = path.removesuffix("/status")
        before = self.objects.get(place)
        return _failure(404) if before is None else _answer(200, self._store(place, merged(before, body)))

    def _delete(self, path: str, body: Any) -> Answer:
        found = self.objects.get(path)
        if found is None:
            return _failure(404)
        wanted = ((body or {}).get("preconditions") or {}).get("uid", "")
        if wanted and wanted != found["metadata"].get("uid"):
            return _failure(409)
        del self.objects[path]
        return _answer(200, found)

    def put_object(self, place: str, body: dict[str, Any]) -> None:
        """As somebody else writes it."""
        self._store(place, body)

    def _store(self, place: str, body: dict[str, Any], **metadata: str) -> dict[str, Any]:
        self._version += 1
        info = body.get("status", {}).get("nodeInfo", {})
        for name in self.drops:
            info.pop(name, None)
        kept = {**body["metadata"], **metadata, "resourceVersion": str(self._version)}
        self.objects[place] = {**body, "kind": _KINDS[place.split("/")[-2]], "metadata": kept}
        return self.objects[place]


def _answer(code: int, body: Any) -> Answer:
    return Answer(code, {}, json.dumps(body).encode())


def _failure(code: int) -> Answer:
    return _answer(code, {"kind": "Status", "status": "Failure", "message": "refused by the test", "code": code})
