"""Answers the Summary: in the message while it is small, else by a socket of our own."""

from __future__ import annotations

import asyncio

import msgspec

from services.stats.handlers.collect import Collector
from shared.contracts.stats import SummaryQuery, SummaryReply
from shared.streams.server import StreamServer

INLINE_BYTES = 256 << 10


class Queries:
    def __init__(self, collector: Collector, streams: StreamServer) -> None:
        self._collector = collector
        self._streams = streams

    async def summary(self, query: SummaryQuery) -> SummaryReply:
        body = self._collector.summary(query.only_cpu_and_memory)
        if len(body) <= INLINE_BYTES:
            return SummaryReply(summary=msgspec.Raw(body))

        async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(body)

        return SummaryReply(ticket=self._streams.issue(send))
