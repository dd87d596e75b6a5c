"""Wait for a condition, bounded: the only way a test waits."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def eventually(check: Callable[[], T | None], *, within: float, every: float = 0.05) -> T:
    """Call `check` until it returns something true; its result. An AssertionError or OSError inside is a "not yet".

    Raises AssertionError with the last reason after `within` seconds.
    """
    deadline = time.monotonic() + within
    while True:
        reason: object
        try:
            result = check()
        except (AssertionError, OSError, KeyError, IndexError) as error:
            reason = error
        else:
            if result:
                return result
            reason = f"{result!r}"
        if time.monotonic() > deadline:
            source = inspect.getsource(check).strip() if inspect.isfunction(check) else repr(check)
            raise AssertionError(f"not within {within} s: {reason}\n{source}")
        time.sleep(every)


async def eventually_async(check: Callable[[], Any], *, within: float, every: float = 0.02) -> Any:
    """The same for coroutines and loop-bound state."""
    deadline = time.monotonic() + within
    while True:
        reason: object
        try:
            value = check()
            result = await value if inspect.isawaitable(value) else value
        except (AssertionError, OSError, KeyError, IndexError) as error:
            reason = error
        else:
            if result:
                return result
            reason = f"{result!r}"
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: {reason}")
        await asyncio.sleep(every)
