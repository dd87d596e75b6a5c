"""A worker waits for its engine; in a container only so long as its mounted socket may still be the right one."""

from __future__ import annotations

import pytest

from services.podworker.handlers.relist import EngineLost, Relist
from tests.support.model_runtime import ModelRuntime


class FakeClock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> float:
        return self.seconds

    def boot_seconds(self) -> float:
        return self.seconds

    def boot_id(self) -> str:
        return "boot"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def engine(clock: FakeClock) -> ModelRuntime:
    return ModelRuntime(clock.now)


async def test_an_engine_that_is_away_is_waited_for(clock: FakeClock, engine: ModelRuntime) -> None:
    relist = Relist(engine, clock, lambda pods: None, lambda uid: None)
    engine.unavailable = True
    for _ in range(100):
        assert not await relist.once()
        clock.seconds += 60
    assert relist.trouble
    engine.unavailable = False
    assert await relist.once()
    assert not relist.trouble


async def test_a_mounted_socket_is_given_up_after_its_bound(clock: FakeClock, engine: ModelRuntime) -> None:
    relist = Relist(engine, clock, lambda pods: None, lambda uid: None, give_up_seconds=30)
    engine.unavailable = True
    assert not await relist.once()
    clock.seconds += 30
    assert not await relist.once()
    clock.seconds += 1
    with pytest.raises(EngineLost, match="no answer from the engine for 30 s"):
        await relist.once()


async def test_an_answer_in_between_starts_the_count_anew(clock: FakeClock, engine: ModelRuntime) -> None:
    relist = Relist(engine, clock, lambda pods: None, lambda uid: None, give_up_seconds=30)
    for _ in range(10):
        engine.unavailable = True
        assert not await relist.once()
        clock.seconds += 20
        engine.unavailable = False
        assert await relist.once()
        clock.seconds += 20
