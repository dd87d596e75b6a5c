"""A watch on a bucket that never goes deaf: a complete list first, then changes, and a new list on every doubt.

nats-py's own watch sleeps about 18 s after a server restart; this one lists again as soon as the connection is back,
when the stream turns out to be ahead of what was seen, when the server counts messages for us that don't come, and
every five minutes anyway.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Any

from shared.bus.bucket import is_deleted
from shared.bus.client import _NETWORK_ERRORS, Bus
from shared.bus.errors import BusUnavailable
from shared.contracts.subject import Bucket

log = logging.getLogger("podbus.bus.watch")

GAP_CHECK_SECONDS = 10.0
RELIST_SECONDS = 300.0
_LIST_SECONDS = 3.0
"""Without a further message for this long, a list that isn't complete is begun anew."""
_CONSUMER_SECONDS = 30.0
"""How long the server keeps an abandoned consumer: without it each re-list would leave one for five minutes."""

QUIET_SECONDS = 1.0
_MOST_QUIET_SECONDS = 60.0
"""A message that says "n more are pending" and is followed by none for so long is a doubt: nats-server 2.9.10 skips
messages when a subject is purged, and counts them as pending for ever. Those that were overwritten before they were
sent it can count, too, and no one needs them: each doubt takes twice as long as the last, until the count is zero."""

OnList = Callable[[Mapping[str, bytes]], None]
OnChange = Callable[[str, bytes | None], None]


class _Listing:
    """A list is complete with the message that was the stream's last when the watch had begun, or a later one.

    Messages come in the stream's order, so all others came before. The library goes by the server's count of pending
    messages instead, which never reaches zero when a key was overwritten in the middle of the list (seen on 2.9.10).
    """

    def __init__(self, last: int) -> None:
        self._last = last
        self._seen = 0
        self.entries: dict[str, bytes] = {}

    def take(self, key: str, value: bytes | None, revision: int) -> None:
        self._seen = max(self._seen, revision)
        if value is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = value

    @property
    def complete(self) -> bool:
        return self._seen >= self._last


class BucketWatch:
    """Calls `on_list` with the whole bucket (at least once before `listed` is set), then `on_change(key, value)`;
    a deleted key's value is None. Both run on the loop and must be quick."""

    def __init__(self, bus: Bus, bucket: Bucket, on_list: OnList, on_change: OnChange) -> None:
        self._bus = bus
        self._bucket = bucket
        self._on_list = on_list
        self._on_change = on_change
        self._kick = asyncio.Event()
        self._seen = 0
        self._quiet = QUIET_SECONDS
        self.listed = asyncio.Event()
        bus.on_reconnect(self._kick.set)

    def relist(self) -> None:
        """List again now."""
        self._kick.set()

    async def run(self) -> None:
        """Watch for ever. Errors of the bus only delay."""
        delay = 0.2
        while True:
            self._kick.clear()
            try:
                await self._watch_once()
                delay = 0.2
            except (*_NETWORK_ERRORS, BusUnavailable) as error:
                log.info("watch broken bucket=%s error=%s retry_in=%.1fs", self._bucket.name, error, delay)
                try:
                    await asyncio.wait_for(self._kick.wait(), delay * random.uniform(0.8, 1.2))  # noqa: S311
                except TimeoutError:
                    delay = min(delay * 2, 5.0)

    async def _watch_once(self) -> None:
        store = await self._bus.bucket(self._bucket)
        watcher = await store.watchall(inactive_threshold=_CONSUMER_SECONDS)
        gap = asyncio.create_task(self._find_gap())
        kick = asyncio.create_task(self._kick.wait())
        update: asyncio.Task[Any] | None = None
        loop = asyncio.get_running_loop()
        until = loop.time() + RELIST_SECONDS
        try:
            _, last = await self._bus.last_sequence(self._bucket)
            pending = 0
            listing: _Listing | None = _Listing(last)
            if last == 0 and listing is not None and self._finish(listing):
                listing = None
            while (left := until - loop.time()) > 0:
                if update is None:
                    update = asyncio.ensure_future(watcher.updates(timeout=2 * RELIST_SECONDS))  # type: ignore[no-untyped-call]
                await asyncio.wait(
                    {update, gap, kick},
                    return_when=asyncio.FIRST_COMPLETED,
                    timeout=self._patience(left, pending) if listing is None else _LIST_SECONDS,
                )
                if kick.done() or gap.done():
                    return
                if not update.done():
                    if listing is not None:
                        log.info("list not complete bucket=%s: listing again", self._bucket.name)
                    elif pending:
                        log.info("%d messages don't come bucket=%s: listing again", pending, self._bucket.name)
                        self._quiet = min(2 * self._quiet, _MOST_QUIET_SECONDS)
                    return
                entry, update = update.result(), None
                if entry is None:  # the library's end of the list: it can be missing, see _Listing
                    continue
                revision = entry.revision or 0
                self._seen = max(self._seen, revision)
                pending = entry.delta or 0
                if not pending:
                    self._quiet = QUIET_SECONDS
                value = None if is_deleted(entry) else entry.value
                if listing is None:
                    self._on_change(entry.key, value)
                else:
                    listing.take(entry.key, value, revision)
                    if self._finish(listing):
                        listing = None
        finally:
            for task in (update, gap, kick):
                if task is not None:
                    task.cancel()
            self._seen = 0
            try:
                await watcher.stop()  # type: ignore[no-untyped-call]
            except _NETWORK_ERRORS as error:
                log.debug("watch not stopped bucket=%s error=%s", self._bucket.name, error)

    def _patience(self, left: float, pending: int) -> float:
        return min(left, self._quiet) if pending else left

    def _finish(self, listing: _Listing) -> bool:
        if not listing.complete:
            return False
        self._on_list(listing.entries)
        self.listed.set()
        return True

    async def _find_gap(self) -> None:
        """Return when the stream is ahead of what was seen at two checks, or isn't the stream that we watch."""
        identity, behind = "", 0
        while True:
            await asyncio.sleep(GAP_CHECK_SECONDS)
            if not self._bus.connected:
                continue
            try:
                created, last = await self._bus.last_sequence(self._bucket)
            except BusUnavailable:
                behind += 1
            else:
                behind = behind + 1 if last > self._seen or (identity and created != identity) else 0
                identity = identity or created
            if behind >= 2:
                log.warning("watch has a gap bucket=%s: listing again", self._bucket.name)
                return
