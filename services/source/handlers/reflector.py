"""Keeps a copy of one list of the API server: list once, then watch; list anew only when the server has forgotten."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec

from services.source.core.reflected import JsonObject, Reflected, expired, listed, told
from shared.apiserver.errors import ApiError, Unreachable
from shared.apiserver.server import ApiServer
from shared.runtime.backoff import Delays

log = logging.getLogger("podbus.source.reflector")

_FIRST_SECONDS = 0.25
_MOST_SECONDS = 10.0
_WATCH_SECONDS = (300, 600)
_OVERTIME_SECONDS = 30
"""A watch that says nothing for so long after its time is dead."""
_PAGE = 500
_SOUND_SECONDS = 1.0
"""A watch that stood for so long was a good one; that it broke is no trouble yet."""


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[dict[str, Any]] | None = None


class Reflector:
    """`run` is a task; `changed` is called after each change of `known` or of `error`."""

    def __init__(
        self, server: ApiServer, path: str, query: Mapping[str, str], changed: Callable[[], None], rng: Random
    ) -> None:
        """`query`: selectors."""
        self.known = Reflected()
        self.error = ""
        """Why `known` can't be brought up to date now."""
        self.answered = asyncio.Event()
        """It was listed once."""
        self._server = server
        self._path = path
        self._query = dict(query)
        self._changed = changed
        self._rng = rng

    async def run(self) -> None:
        delays, clock = Delays(_FIRST_SECONDS, _MOST_SECONDS, self._rng), asyncio.get_running_loop().time
        while True:
            watching_since, wait, trouble = clock(), 0.0, ""
            is_watching = False
            try:
                if not self.known.version or self.error:
                    await self._list()
                watching_since, is_watching = clock(), True
                await self._watch()
            except ApiError as error:
                if error.is_expired:
                    log.info("list anew path=%s", self._path)
                    self.known = expired(self.known)
                else:
                    trouble = str(error)
                    wait = error.retry_after or 0.0
            except Unreachable as error:
                trouble = str(error)
            if is_watching and clock() - watching_since >= _SOUND_SECONDS:
                delays.reset()
            elif trouble:
                self._failed(trouble)
            await asyncio.sleep(max(wait, delays.next()))

    async def _list(self) -> None:
        found: list[JsonObject] = []
        query = {**self._query, "limit": str(_PAGE)}
        while True:
            answer = (await self._server.request("GET", self._path, query=query)).check()
            try:
                page = msgspec.json.decode(answer.body, type=_List)
            except msgspec.MsgspecError as error:
                raise Unreachable(f"{self._path}: the answer is no list: {error}") from error
            found += page.items or ()
            if not page.metadata.continue_:
                break
            query["continue"] = page.metadata.continue_
        self.known = listed(found, page.metadata.resource_version)
        self._succeeded()

    async def _watch(self) -> None:
        """Until it ends. A connection that breaks costs nothing: the next watch goes on from the last version."""
        seconds = self._rng.randint(*_WATCH_SECONDS)
        query = {
            **self._query,
            "resourceVersion": self.known.version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        async for event in self._server.watch(self._path, query, silence=seconds + _OVERTIME_SECONDS):
            before = self.known
            try:
                found = msgspec.json.decode(event.object, type=dict[str, Any])
            except msgspec.MsgspecError as error:
                raise Unreachable(f"a watch event can't be read: {error}") from error
            self.known = told(before, event.type, found)
            if self.error or self.known.objects is not before.objects:
                self._succeeded()

    def _succeeded(self) -> None:
        if self.error:
            log.info("answers again path=%s", self._path)
        self.error = ""
        self.answered.set()
        self._changed()

    def _failed(self, error: str) -> None:
        if error != self.error:
            log.warning("not followed path=%s error=%s", self._path, error)
            self.error = error
            self._changed()
