"""Questions to stats."""

from __future__ import annotations

import msgspec

from shared.contracts.streams import StreamTicket


class SummaryQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """stats.q.summary"""

    only_cpu_and_memory: bool = False


class SummaryReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The Summary (compact JSON), or where to fetch it when it is over 256 KiB."""

    summary: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    ticket: StreamTicket | None = None
