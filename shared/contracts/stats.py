"""Questions to stats."""

from __future__ import annotations

from typing import Literal

import msgspec

from shared.contracts.streams import StreamTicket


class SummaryQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """stats.q.summary"""

    only_cpu_and_memory: bool = False


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """stats.q.page"""

    page: Literal["resource", "cadvisor", "rest"]
    """/metrics/resource, /metrics/cadvisor, or one of cAdvisor's REST answers."""
    path: str = ""
    """Of a REST answer, below /api/."""
    options: dict[str, str] = {}
    """Of a REST answer: its query, and the body's fields."""
    gzip: bool = False
    have: str = ""
    """The tag of the page that the caller holds: an unchanged one isn't sent again."""


class PageReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The page, or where to fetch it when it is over 256 KiB."""

    tag: str = ""
    """Other content, other tag; of one process."""
    unchanged: bool = False
    status: int = 200
    body: bytes = b""
    ticket: StreamTicket | None = None


class SummaryReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The Summary (compact JSON), or where to fetch it when it is over 256 KiB."""

    summary: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    ticket: StreamTicket | None = None
