"""The file source: lists on every hint and every 20 s."""

from __future__ import annotations

import asyncio

from services.source.core.merge import SourcePlan
from services.source.handlers.feed import Feed, FeedContext
from services.source.ports import Manifests

LOOK_AGAIN_SECONDS = 0.5
"""While a file seems to be half written."""


class FileSource:
    """`run` is a guarded task; `list_now` may be called beside it."""

    name = "files"

    def __init__(self, manifests: Manifests, context: FeedContext, *, period: float) -> None:
        self._manifests = manifests
        self.feed = Feed("file", manifests.origin, context)
        self._period = period
        self._listing = asyncio.Lock()

    async def run(self) -> None:
        changed = asyncio.ensure_future(self._manifests.changed())
        woken = asyncio.ensure_future(self.feed.woken.wait())
        try:
            while True:
                if changed.done():
                    changed.result()
                    changed = asyncio.ensure_future(self._manifests.changed())
                if woken.done():
                    self.feed.woken.clear()
                    woken = asyncio.ensure_future(self.feed.woken.wait())
                plan = await self.list_now()
                wait = min(self._period, LOOK_AGAIN_SECONDS) if plan.unsettled else self._period
                await asyncio.wait({changed, woken}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            woken.cancel()

    async def list_now(self) -> SourcePlan:
        """Read everything, decide, publish."""
        async with self._listing:
            return await self.feed.take(self._manifests.listing())
