"""What the handlers of source need from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from services.source.core.merge import Listing
from services.source.core.state import StoredObject


class StoreUnavailable(Exception):
    """source.db can't be written or read now (disk full)."""


class Remembered(msgspec.Struct, frozen=True):
    """The last good set of a source."""

    rows: tuple[StoredObject, ...]
    gen: int
    listed_at: float


class SourceStore(Protocol):
    def load(self, source: str, origin: str) -> Remembered:
        """Empty when nothing is known of this source at this origin. Raises StoreUnavailable."""
        ...

    def save(self, source: str, origin: str, rows: Sequence[StoredObject], gen: int, listed_at: float) -> None:
        """Replace the set, in one transaction. Raises StoreUnavailable."""
        ...


class UrlUnavailable(Exception):
    """The URL didn't answer with 200 and a body of a bearable size: str(error) says what happened."""


class ManifestPage(Protocol):
    """A URL with manifests."""

    origin: str
    """As it may be shown: without credentials."""

    async def fetch(self) -> bytes:
        """The body of a 200. Raises UrlUnavailable, after a bounded time."""
        ...


class Manifests(Protocol):
    """A place with manifest files."""

    origin: str

    def listing(self) -> Listing:
        """Read everything now. Never raises: what can't be read is told in the listing."""
        ...

    async def changed(self) -> None:
        """Return when something there may have changed: a hint."""
        ...
