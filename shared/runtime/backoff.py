"""Delays between tries: doubling, bounded, jittered by a given source of randomness."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


@dataclass
class Delays:
    """`next()` gives first, 2*first, ... up to `most` seconds, each times 0.8..1.2; `reset()` after a success."""

    first: float
    most: float
    rng: Random = field(default_factory=Random)
    _current: float = 0.0

    def next(self) -> float:
        self._current = min(self._current * 2, self.most) if self._current else self.first
        return self._current * self.rng.uniform(0.8, 1.2)

    def reset(self) -> None:
        self._current = 0.0
