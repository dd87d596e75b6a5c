"""Asks the API server once for what many want to know, tries again what may pass, and keeps clear answers."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

from services.api.core.access import Identity
from services.api.core.reviews import (
    ACCESS_REVIEWS,
    LARGEST_CACHED,
    TOKEN_REVIEWS,
    Kept,
    UnusableAnswer,
    access_review,
    access_spec,
    retry_delays,
    reviewed_access,
    reviewed_identity,
    token_review,
)
from services.api.ports import ReviewFailed, ReviewPost

_LONGEST_REVIEW_SECONDS = 30.0

T = TypeVar("T")


@dataclass(frozen=True)
class KeepSeconds:
    """How long answers count."""

    token: float = 120.0
    allowed: float = 300.0
    not_allowed: float = 30.0


class ApiServerReviews:
    """ports.Reviewer. A failure is never kept."""

    def __init__(
        self,
        post: ReviewPost,
        node: str,
        key: bytes,
        monotonic: Callable[[], float],
        *,
        keep: KeepSeconds,
        chance: random.Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`key`: random bytes; tokens are held as their keyed hashes only."""
        self._post = post
        self._node = node
        self._key = key
        self._monotonic = monotonic
        self._keep = keep
        self._chance = chance
        self._sleep = sleep
        self._identities: Kept[Identity | None] = Kept()
        self._accesses: Kept[bool] = Kept()
        self._running: dict[Hashable, asyncio.Task[Any]] = {}

    async def identify(self, token: str) -> Identity | None:
        digest = blake2b(token.encode("utf-8", "surrogateescape"), key=self._key, digest_size=32).digest()
        if (found := self._identities.find(digest, self._monotonic())) is not None:
            return found[0]

        async def ask() -> Identity | None:
            who = await self._ask(TOKEN_REVIEWS, token_review(token), reviewed_identity)
            if self._keep.token > 0:
                self._identities.keep(digest, who, self._monotonic() + self._keep.token)
            return who

        return await self._once(("token", digest), ask)

    async def allows(self, who: Identity, method: str, subresource: str) -> bool:
        spec = access_spec(who, method, subresource, self._node)
        text = json.dumps(spec, sort_keys=True)
        if (found := self._accesses.find(text, self._monotonic())) is not None:
            return found[0]

        async def ask() -> bool:
            allowed = await self._ask(ACCESS_REVIEWS, access_review(spec), reviewed_access)
            seconds = self._keep.allowed if allowed else self._keep.not_allowed
            if len(text) <= LARGEST_CACHED:
                self._accesses.keep(text, allowed, self._monotonic() + seconds)
            return allowed

        return await self._once(("access", text), ask)

    async def _once(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """Who asks while the same question is open waits for its answer; one who leaves takes it from nobody."""
        task: asyncio.Task[T] | None = self._running.get(key)
        if task is None:
            task = asyncio.ensure_future(_within(ask()))
            self._running[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    def _forget(self, key: Hashable, done: asyncio.Task[Any]) -> None:
        del self._running[key]
        if not done.cancelled():
            done.exception()  # looked at, though all who asked may have left

    async def _ask(self, path: str, body: dict[str, Any], read: Callable[[Any], T]) -> T:
        for delay in (*retry_delays(self._chance.random), None):
            try:
                return read(await self._post(path, body))
            except UnusableAnswer as error:
                raise ReviewFailed(str(error)) from error
            except ReviewFailed as error:
                if delay is None or not error.transient:
                    raise
            await self._sleep(delay)
        raise AssertionError("the last try returns or raises")


async def _within(asked: Awaitable[T]) -> T:
    try:
        return await asyncio.wait_for(asked, _LONGEST_REVIEW_SECONDS)
    except TimeoutError:
        raise ReviewFailed(f"no answer within {_LONGEST_REVIEW_SECONDS:.0f} s") from None
