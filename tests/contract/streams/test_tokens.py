"""Single-use tokens, without a socket."""

from __future__ import annotations

import pytest

from shared.streams.tokens import MAX_OUTSTANDING, TOKEN_SECONDS, TokenBook


def _random(number: int) -> bytes:
    return number.to_bytes(18, "big")


def test_a_token_opens_what_it_was_issued_for() -> None:
    book: TokenBook[str] = TokenBook()
    first, second = (
        book.issue("a", now=0, randomness=_random(1)),
        book.issue("b", now=0, randomness=_random(2)),
    )
    assert book.take(second, now=1) == "b"
    assert book.take(first, now=1) == "a"


def test_a_token_is_used_up_by_its_use() -> None:
    book: TokenBook[str] = TokenBook()
    token = book.issue("a", now=0, randomness=_random(1))
    book.take(token, now=1)
    assert book.take(token, now=1) is None


def test_an_old_token_opens_nothing_and_is_forgotten() -> None:
    book: TokenBook[str] = TokenBook()
    token = book.issue("a", now=0, randomness=_random(1))
    assert book.take(token, now=TOKEN_SECONDS) is None
    assert len(book) == 0


def test_a_token_that_nobody_fetched_goes_with_the_next_one() -> None:
    book: TokenBook[str] = TokenBook()
    book.issue("a", now=0, randomness=_random(1))
    book.issue("b", now=TOKEN_SECONDS, randomness=_random(2))
    assert len(book) == 1


def test_the_oldest_goes_when_too_many_wait() -> None:
    book: TokenBook[int] = TokenBook()
    tokens = [book.issue(i, now=0, randomness=_random(i)) for i in range(MAX_OUTSTANDING + 1)]
    assert len(book) == MAX_OUTSTANDING
    assert book.take(tokens[0], now=0) is None
    assert book.take(tokens[1], now=0) == 1


def test_too_little_randomness_is_refused() -> None:
    with pytest.raises(ValueError):
        TokenBook[str]().issue("a", now=0, randomness=b"short")
