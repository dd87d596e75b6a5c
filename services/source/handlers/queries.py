"""Answers what the sources hold, and lists again on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from services.source.core.merge import SourcePlan
from services.source.handlers.feed import Feed
from services.source.handlers.publish import Publisher
from shared.bus import RemoteError
from shared.contracts.sources import ReloadCommand, Reloaded, SourceList, SourcesQuery

RELOAD_SECONDS = 5.0


class Source(Protocol):
    """One place that pods come from."""

    name: str
    feed: Feed

    async def run(self) -> None: ...

    async def list_now(self) -> SourcePlan: ...


class Queries:
    def __init__(self, sources: Sequence[Source], publisher: Publisher) -> None:
        self._sources = sources
        self._publisher = publisher

    async def sources(self, _: SourcesQuery) -> SourceList:
        return SourceList(sources=self._publisher.markers)

    async def reload(self, _: ReloadCommand) -> Reloaded:
        """Answered when the listing is on the bus."""
        try:
            async with asyncio.timeout(RELOAD_SECONDS):
                plans = await asyncio.gather(*(source.list_now() for source in self._sources))
                for source in self._sources:
                    await source.feed.published()
        except TimeoutError as error:
            raise RemoteError("unavailable", "a source, or the bus, takes longer than usual") from error
        problems = [problem for plan in plans for problem in plan.problems]
        return Reloaded(
            pods=sum(len(plan.pods) for plan in plans), errors=sum(problem.is_error for problem in problems)
        )
