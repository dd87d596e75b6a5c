"""Questions to source."""

from __future__ import annotations

import msgspec

from shared.contracts.pods import SourceMarker


class SourcesQuery(msgspec.Struct, frozen=True, kw_only=True):
    """source.q.sources: no arguments."""


class SourceList(msgspec.Struct, frozen=True, kw_only=True):
    sources: list[SourceMarker]


class ReloadCommand(msgspec.Struct, frozen=True, kw_only=True):
    """source.c.reload: list every source now; answered when it is published."""


class Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    pods: int
    errors: int
