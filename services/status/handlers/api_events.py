"""Carries events to the API server, after they were counted and cut as there (core/aggregate.py)."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from random import Random

import msgspec

from services.status.core.aggregate import Tally, added
from services.status.core.api_events import Counted, again, new_event
from shared.apiserver.errors import ApiError, Unreachable
from shared.apiserver.server import STRATEGIC, Requests
from shared.runtime.backoff import Delays

log = logging.getLogger("podbus.status.api_events")

CALL_SECONDS = 10.0
WAITING_MOST = 1000
"""client-go's queue. Different events wait for so many places; the same one again has its place already."""
KNOWN_MOST = 4096
"""client-go: so many are remembered, so that the same one again is counted and not told anew."""
FIRST_DELAY, LONGEST_DELAY = 1.0, 10.0


class ApiEvents:
    """`run` is a guarded task; `tell` takes what was counted since the last call."""

    def __init__(self, server: Requests, node: str, rng: Random) -> None:
        self._server = server
        self._node = node
        self._rng = rng
        self._waiting: dict[str, Tally] = {}
        self._known: OrderedDict[str, Counted] = OrderedDict()
        self._work = asyncio.Event()
        self._lost = 0
        self._trouble = ""

    def tell(self, tallies: Mapping[str, Tally]) -> None:
        """By the event's key. In an outage they wait; when there are too many, the oldest go, and that is told."""
        for key, tally in tallies.items():
            self._waiting[key] = added(self._waiting.get(key), tally)
        while len(self._waiting) > WAITING_MOST:
            del self._waiting[next(iter(self._waiting))]
            self._lost += 1
        if self._waiting:
            self._work.set()

    async def run(self) -> None:
        delays = Delays(FIRST_DELAY, LONGEST_DELAY, self._rng)
        while True:
            await self._work.wait()
            if not self._waiting:
                self._work.clear()
                continue
            key = next(iter(self._waiting))
            tally = self._waiting.pop(key)
            try:
                await self._send(key, tally)
            except Unreachable as error:
                self._put_back(key, tally)
                self._tell_trouble(str(error))
                await asyncio.sleep(delays.next())
            except (ApiError, msgspec.MsgspecError) as error:
                # A namespace that is being deleted takes none, and some are never taken: the history has them.
                log.warning("event not taken reason=%s error=%s", tally.event.reason, error)
            else:
                self._tell_trouble("")
                delays = Delays(FIRST_DELAY, LONGEST_DELAY, self._rng)

    def _put_back(self, key: str, tally: Tally) -> None:
        """First in the row again, with what has come meanwhile."""
        newer = self._waiting.pop(key, None)
        self._waiting = {key: tally if newer is None else added(tally, newer), **self._waiting}

    async def _send(self, key: str, tally: Tally) -> None:
        known = self._known.get(key)
        if known is not None:
            answer = await self._server.request(
                "PATCH",
                f"{_path(known.namespace)}/{known.name}",
                body=msgspec.json.encode(again(known, tally)),
                content_type=STRATEGIC,
                within=CALL_SECONDS,
            )
            if answer.code != 404:
                answer.check()
                self._remember(key, msgspec.structs.replace(known, count=known.count + tally.count))
                return
        body = new_event(tally, self._node)
        meta = body["metadata"]
        answer = await self._server.request(
            "POST", _path(meta["namespace"]), body=msgspec.json.encode(body), within=CALL_SECONDS
        )
        if answer.code != 409:
            answer.check()
        self._remember(key, Counted(namespace=meta["namespace"], name=meta["name"], count=tally.count))

    def _remember(self, key: str, counted: Counted) -> None:
        self._known[key] = counted
        self._known.move_to_end(key)
        while len(self._known) > KNOWN_MOST:
            self._known.popitem(last=False)

    def _tell_trouble(self, error: str) -> None:
        """Once per outage; and after it what it cost."""
        if error and not self._trouble:
            log.error("events wait for the API server error=%s", error)
        elif self._trouble and not error:
            log.info("events are told again waiting=%d lost=%d", len(self._waiting), self._lost)
            self._lost = 0
        self._trouble = error


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/events"
