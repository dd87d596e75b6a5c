"""Permits are the node's: a worker takes its share, and a share can change while some are held."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.podworker.handlers.permits import Permits, share_of


async def test_no_more_are_held_than_the_size() -> None:
    permits, holders, most = Permits(2), 0, 0

    async def work() -> None:
        nonlocal holders, most
        async with permits.held():
            holders += 1
            most = max(most, holders)
            await asyncio.sleep(0)
            holders -= 1

    await asyncio.gather(*(work() for _ in range(20)))
    assert most == 2


async def test_first_come_first_served() -> None:
    permits, order = Permits(1), list[int]()
    await permits.acquire()

    async def work(number: int) -> None:
        async with permits.held():
            order.append(number)

    tasks = [asyncio.create_task(work(n)) for n in range(5)]
    await asyncio.sleep(0)
    permits.release()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]


async def test_a_larger_size_lets_waiters_in_at_once() -> None:
    permits = Permits(1)
    await permits.acquire()
    waiting = asyncio.create_task(permits.acquire())
    await asyncio.sleep(0)
    assert not waiting.done()
    permits.resize(2)
    await asyncio.wait_for(waiting, 1)


async def test_a_cancelled_waiter_takes_nothing() -> None:
    permits = Permits(1)
    await permits.acquire()
    waiting = asyncio.create_task(permits.acquire())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    permits.release()
    await asyncio.wait_for(permits.acquire(), 1)


async def test_a_waiter_cancelled_in_the_moment_of_its_turn_gives_it_on() -> None:
    permits = Permits(1)
    await permits.acquire()
    first, second = asyncio.create_task(permits.acquire()), asyncio.create_task(permits.acquire())
    await asyncio.sleep(0)
    permits.release()  # the turn is the first's, which hasn't run yet
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await asyncio.wait_for(second, 1)


@given(st.integers(1, 64), st.integers(1, 64))
def test_shares_are_at_least_one_and_together_no_more_than_all_where_possible(total: int, workers: int) -> None:
    share = share_of(total, workers)
    assert share >= 1
    assert share * workers <= max(total, workers)
