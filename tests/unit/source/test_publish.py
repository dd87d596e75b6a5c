"""In which order the bucket is brought to what the sources want."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from services.source.handlers.publish import Publisher
from shared.bus import Bus
from shared.contracts.pods import PodDesired, SourceMarker, SourceName
from tests.support.eventually import eventually_async


class Bucket:
    """As much of a Bus as the publisher uses: notes what is done, in order."""

    def __init__(self, *keys: str) -> None:
        self.keys_there = set(keys)
        self.done: list[str] = []
        self.reconnected: Callable[[], None] = lambda: None

    def on_reconnect(self, call: Callable[[], None]) -> None:
        self.reconnected = call

    async def put(self, key: Any, _: object, id_: str) -> None:
        self.keys_there.add(key.key(id_))
        self.done.append(f"put {key.key(id_)}")

    async def delete(self, key: Any, id_: str) -> None:
        self.keys_there.discard(key.key(id_))
        self.done.append(f"delete {key.key(id_)}")

    async def keys(self, _: object) -> list[str]:
        return sorted(self.keys_there)


def marker(source: SourceName, *uids: str, ready: bool = True) -> SourceMarker:
    return SourceMarker(v=1, node="n1", ts=0.0, source=source, ready=ready, epoch="e", uids=list(uids))


def pods(source: SourceName, *uids: str) -> dict[str, PodDesired]:
    body = msgspec.Raw(b"{}")
    return {
        uid: PodDesired(
            v=1,
            node="n1",
            ts=0.0,
            uid=uid,
            namespace="d",
            name=uid,
            source=source,
            gen=1,
            hash="h",
            seen=0.0,
            body=body,
        )
        for uid in uids
    }


class Publishing:
    """A publisher at work on a bucket."""

    def __init__(self, bucket: Bucket, *sources: str) -> None:
        self.bucket = bucket
        self.publisher = Publisher(cast(Bus, bucket), sources)

    async def __aenter__(self) -> Publisher:
        self.task = asyncio.create_task(self.publisher.run())
        return self.publisher

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()


async def test_pods_come_before_their_marker_and_deletions_after_it() -> None:
    bucket = Bucket("pod.old")
    async with Publishing(bucket, "file") as publisher:
        publisher.want(marker("file", "a"), pods("file", "a"))
        await publisher.published("file")
    assert bucket.done == ["put pod.a", "put source.file", "delete pod.old"]


async def test_nothing_is_published_before_every_source_has_spoken() -> None:
    """S20: a marker of a former life may say that the other is ready, and then an orphan would be ended."""
    bucket = Bucket("source.http", "pod.theirs")
    async with Publishing(bucket, "file", "http") as publisher:
        publisher.want(marker("file"), {})
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(publisher.published("file"), 0.05)
        assert bucket.done == []
        publisher.want(marker("http", "theirs", ready=False), pods("http", "theirs"))
        await publisher.published("file")
    assert bucket.done == ["put pod.theirs", "put source.http", "put source.file"]


async def test_what_a_source_drops_goes_and_what_others_have_stays() -> None:
    bucket = Bucket()
    async with Publishing(bucket, "file", "http") as publisher:
        publisher.want(marker("file", "a", "b"), pods("file", "a", "b"))
        publisher.want(marker("http", "c"), pods("http", "c"))
        await publisher.published("file")
        publisher.want(marker("file", "a"), pods("file", "a"))
        await publisher.published("file")
    assert bucket.keys_there == {"pod.a", "pod.c", "source.file", "source.http"}


async def test_a_marker_of_a_source_that_is_no_more_goes() -> None:
    bucket = Bucket("source.http", "pod.theirs")
    async with Publishing(bucket, "file") as publisher:
        publisher.want(marker("file"), {})
        await publisher.published("file")
    assert bucket.keys_there == {"source.file"}


async def test_a_store_that_may_be_new_is_filled_again() -> None:
    bucket = Bucket()
    async with Publishing(bucket, "file") as publisher:
        publisher.want(marker("file", "a"), pods("file", "a"))
        await publisher.published("file")
        bucket.keys_there.clear()
        bucket.reconnected()
        await eventually_async(lambda: bucket.keys_there == {"pod.a", "source.file"}, within=5)
