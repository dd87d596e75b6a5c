"""The URL source: asks every httpCheckFrequency; what isn't a whole good answer changes nothing."""

from __future__ import annotations

import asyncio

from services.source.core.merge import Listing, SourcePlan
from services.source.handlers.feed import Feed, FeedContext
from services.source.ports import ManifestPage, UrlUnavailable


class UrlSource:
    """`run` is a guarded task; `list_now` may be called beside it."""

    name = "url"

    def __init__(self, page: ManifestPage, context: FeedContext, *, period: float) -> None:
        self._page = page
        self.feed = Feed("http", page.origin, context)
        self._period = period
        self._fetching = asyncio.Lock()
        self._failed: Listing | None = None
        """The last answer, if it was none."""

    async def run(self) -> None:
        # The last good set runs before the first answer, which may take a while.
        await self.feed.take(None)
        while True:
            await self.list_now()
            await self._rest()

    async def list_now(self) -> SourcePlan:
        """Ask, decide, publish."""
        async with self._fetching:
            origin = self._page.origin
            try:
                listing = Listing(origin, {origin: await self._page.fetch()})
            except UrlUnavailable as error:
                listing = Listing(origin, missing=True, error=str(error))
            self._failed = listing if listing.missing else None
            return await self.feed.take(listing)

    async def _rest(self) -> None:
        """Until it's time to ask again; what other sources change is followed meanwhile."""
        try:
            async with asyncio.timeout(self._period):
                while True:
                    await self.feed.woken.wait()
                    self.feed.woken.clear()
                    await asyncio.shield(self.feed.take(self._failed))
        except TimeoutError:
            return
