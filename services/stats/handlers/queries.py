"""Answers the Summary and the pages: in the message while they are small, else by a socket of our own."""

from __future__ import annotations

import asyncio
import zlib
from itertools import count

import msgspec

from services.stats.core.rest import Refused, answer
from services.stats.handlers.collect import Collector
from shared.contracts.stats import PageQuery, PageReply, SummaryQuery, SummaryReply
from shared.contracts.streams import StreamTicket
from shared.streams.server import StreamServer

INLINE_BYTES = 256 << 10
_GZIP = 31
"""zlib's window bits for a gzip member."""
_FASTEST = 1


class Queries:
    def __init__(self, collector: Collector, streams: StreamServer) -> None:
        self._collector = collector
        self._streams = streams
        self._kept: dict[tuple[str, bool], tuple[bytes, str, bytes]] = {}
        """By page and form: what it was made of, its tag, what is sent."""
        self._numbers = count(1)
        self._packing = asyncio.Lock()

    async def summary(self, query: SummaryQuery) -> SummaryReply:
        body = self._collector.summary(query.only_cpu_and_memory)
        if len(body) <= INLINE_BYTES:
            return SummaryReply(summary=msgspec.Raw(body))
        return SummaryReply(ticket=self._ticket(body))

    async def page(self, query: PageQuery) -> PageReply:
        if query.page == "rest":
            return self._rest(query)
        plain = self._collector.resource_page() if query.page == "resource" else self._collector.cadvisor_page()
        key = (query.page, query.gzip)
        async with self._packing:  # whoever comes meanwhile finds it packed
            known = self._kept.get(key)
            if known is None or known[0] is not plain:
                body = await asyncio.to_thread(_packed, plain) if query.gzip else plain
                known = self._kept[key] = (plain, f"{id(self):x}-{next(self._numbers)}", body)
        _, tag, body = known
        if query.have == tag:
            return PageReply(tag=tag, unchanged=True)
        if len(body) <= INLINE_BYTES:
            return PageReply(tag=tag, body=body)
        return PageReply(tag=tag, ticket=self._ticket(body))

    def _rest(self, query: PageQuery) -> PageReply:
        collector = self._collector
        collector.want_details()
        try:
            told = answer(query.path, query.options, collector.node(), collector.pods(), collector.machine())
        except Refused as refused:
            return PageReply(status=refused.status, body=f"{refused}\n".encode())
        body = msgspec.json.encode(told)
        if len(body) <= INLINE_BYTES:
            return PageReply(body=body)
        return PageReply(ticket=self._ticket(body))

    def _ticket(self, body: bytes) -> StreamTicket:
        async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(body)

        return self._streams.issue(send)


def _packed(plain: bytes) -> bytes:
    packer = zlib.compressobj(_FASTEST, zlib.DEFLATED, _GZIP)
    return packer.compress(plain) + packer.flush()
