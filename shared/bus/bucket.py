"""How a bucket's stream is declared, and its entries as a list: complete by the stream's own sequence (ADR 13)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec
from nats.js.api import DiscardPolicy, StorageType, StreamConfig
from nats.js.kv import KeyValue

from shared.contracts.subject import Bucket

MAX_VALUE_BYTES = 2 << 20
_BUCKET_BYTES = 256 << 20
_CONSUMER_SECONDS = 5.0
"""How long the server keeps the consumer of a list that was broken off; the library's default is five minutes."""


def stream_of(bucket: Bucket) -> str:
    return f"KV_{bucket.name}"


def stream_config(bucket: Bucket) -> StreamConfig:
    """As the library's create_key_value has it, but for two settings (ADR 15). Rollups, its purge() of a key, are
    refused: nats-server 2.9.10 then skips messages to consumers. Deleting one message is allowed: marks of deleted keys
    are dropped so, because purging the stream of a subject makes the server skip, too."""
    return StreamConfig(
        name=stream_of(bucket),
        description=bucket.summary,
        subjects=[f"$KV.{bucket.name}.>"],
        allow_rollup_hdrs=False,
        deny_delete=False,
        discard=DiscardPolicy.NEW,
        duplicate_window=120.0,
        max_bytes=_BUCKET_BYTES,
        max_consumers=-1,
        max_msg_size=MAX_VALUE_BYTES,
        max_msgs=-1,
        max_msgs_per_subject=1,
        num_replicas=1,
        storage=StorageType.FILE,
    )


class BucketEntry(msgspec.Struct, frozen=True):
    """A key's last message, without its value."""

    key: str
    sequence: int
    written_at: datetime
    is_deleted: bool


def is_deleted(entry: KeyValue.Entry) -> bool:
    return entry.operation in ("DEL", "PURGE")


async def list_entries(store: KeyValue, last_sequence: Callable[[], Awaitable[int]]) -> list[BucketEntry]:
    """The last entry of each key, marks of deleted ones among them. Raises the library's errors.

    `last_sequence` is asked once the list has begun: all that was there at its begin comes before the message that is
    the stream's last by then, or is that message.
    """
    watcher = await store.watchall(meta_only=True, inactive_threshold=_CONSUMER_SECONDS)
    found: dict[str, BucketEntry] = {}
    seen = 0
    try:
        last = await last_sequence()
        while seen < last:
            entry = await watcher.updates(timeout=5)  # type: ignore[no-untyped-call]
            if entry is not None:  # the library's end of the list can come late, or never
                seen = entry.revision
                found[entry.key] = BucketEntry(entry.key, seen, entry.created, is_deleted(entry))
    finally:
        await watcher.stop()  # type: ignore[no-untyped-call]
    return list(found.values())
