"""Which token opens what: single use, good for a minute. Pure: time and randomness come in."""

from __future__ import annotations

from hashlib import sha256
from typing import Generic, TypeVar

T = TypeVar("T")

TOKEN_SECONDS = 60.0
TOKEN_BYTES = 18
"""Randomness of a token: 144 bits, 24 characters."""
MAX_OUTSTANDING = 4096
"""A client that asks and never fetches must not fill memory: the oldest goes first."""


class TokenBook(Generic[T]):
    """Tokens given out and not yet used, each with what it opens. Only hashes are kept, so that finding
    one doesn't take longer the more of it is guessed."""

    def __init__(self) -> None:
        self._entries: dict[bytes, tuple[float, T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def issue(self, value: T, *, now: float, randomness: bytes) -> str:
        """A new token for `value`, written in hex. `now` in seconds of any clock that doesn't step back;
        `randomness` at least TOKEN_BYTES unguessable bytes."""
        if len(randomness) < TOKEN_BYTES:
            raise ValueError(f"a token needs {TOKEN_BYTES} random bytes, not {len(randomness)}")
        self.expire(now)
        if len(self._entries) >= MAX_OUTSTANDING:
            del self._entries[next(iter(self._entries))]
        token = randomness.hex()
        self._entries[sha256(token.encode()).digest()] = (now + TOKEN_SECONDS, value)
        return token

    def take(self, token: str, *, now: float) -> T | None:
        """What the token opens; None when it is unknown, used or too old. It is used up by this."""
        found = self._entries.pop(sha256(token.encode()).digest(), None)
        if found is None or found[0] <= now:
            return None
        return found[1]

    def expire(self, now: float) -> None:
        """Forget what nobody fetched in time."""
        for digest, (until, _) in list(self._entries.items()):  # in order of their end
            if until > now:
                return
            del self._entries[digest]
