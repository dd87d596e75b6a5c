"""The pods that the API server has for this node. What isn't a complete list changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from services.source.core.api_pods import ApiListing, versions_of
from services.source.core.merge import SourcePlan
from services.source.handlers.feed import Feed, FeedContext
from services.source.handlers.reflector import Reflector
from shared.apiserver.server import ApiServer

_SETTLE_SECONDS = 0.02
"""Changes that come together are taken together."""


class ApiSource:
    """`run` is a guarded task; `list_now` may be called beside it."""

    name = "api"

    def __init__(
        self,
        server: ApiServer,
        origin: str,
        context: FeedContext,
        rng: Random,
        on_seen: Callable[[dict[str, str]], Awaitable[None]],
    ) -> None:
        """`on_seen`: told the versions of the pods that are new or were written to."""
        self.feed = Feed("api", origin, context)
        self._origin = origin
        self._on_seen = on_seen
        self._versions: dict[str, str] = {}
        query = {"fieldSelector": f"spec.nodeName={context.node}"}
        self._pods = Reflector(server, "/api/v1/pods", query, self._nudge, rng)

    async def run(self) -> None:
        # The last set goes on before the first answer, which may take a while.
        await self.feed.take(None)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pods.run(), name="reflect pods")
            while True:
                await self.feed.woken.wait()
                await asyncio.sleep(_SETTLE_SECONDS)
                self.feed.woken.clear()
                await self.list_now()

    async def list_now(self) -> SourcePlan:
        """What the watch has told so far: it's never behind by more than the way from the server."""
        listing = self._listing()
        plan = await self.feed.take(listing)
        if listing is not None and not listing.error:
            before, self._versions = self._versions, versions_of(listing.pods)
            if seen := dict(self._versions.items() - before.items()):
                await self._on_seen(seen)
        return plan

    def _nudge(self) -> None:
        self.feed.woken.set()

    def _listing(self) -> ApiListing | None:
        pods = self._pods
        if pods.error:
            return ApiListing(self._origin, error=f"pods can't be followed now: {pods.error}")
        if not pods.known.was_listed:
            return None
        return ApiListing(self._origin, tuple(pods.known.objects.values()))
