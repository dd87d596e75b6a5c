"""What a process counts and measures of itself. Cheap to count; put into words only when it's asked for.

Names are Kubernetes' where it has one (`kubelet_...`, without a library's additions), else `podbus_...`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from shared.contracts.metrics import Distribution, Family, Sample

DEFAULT_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: Prometheus' own."""

Labels = tuple[str, ...]


class Counter:
    """Only grows. One series per combination of label values."""

    def __init__(self) -> None:
        self._values: dict[Labels, float] = {}

    def add(self, *labels: str, by: float = 1.0) -> None:
        self._values[labels] = self._values.get(labels, 0.0) + by

    def forget(self, place: int, value: str) -> None:
        """Drop the series with this value at this place among their labels: what they count is gone."""
        for labels in [one for one in self._values if one[place] == value]:
            del self._values[labels]

    def samples(self) -> tuple[Sample, ...]:
        return tuple(Sample(labels, value) for labels, value in self._values.items())


class Histogram:
    """Observations in buckets."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self.bounds) + 1)
            self._sums[labels] = 0.0
        counts[bisect_left(self.bounds, value)] += 1
        self._sums[labels] += value

    def distributions(self) -> tuple[Distribution, ...]:
        return tuple(Distribution(labels, tuple(counts), self._sums[labels]) for labels, counts in self._counts.items())


Values = Callable[[], Mapping[Labels, float]]
"""Looked at when the metrics are asked for: label values -> value."""


@dataclass(frozen=True)
class Declared:
    """A family before anything was counted."""

    name: str
    kind: str
    help: str
    labels: Labels


class Metrics:
    """All of one process. A name is given once."""

    def __init__(self) -> None:
        self._families: dict[str, Callable[[], Family]] = {}
        self.declared: list[Declared] = []
        """For the documentation: in the order in which they were made."""

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        made = Counter()
        if not labels:
            made.add(by=0.0)  # kubelet: a series without labels is there from the start
        self._add(
            Declared(name, "counter", text, labels), lambda: Family(name, "counter", text, labels, made.samples())
        )
        return made

    def histogram(self, name: str, text: str, *labels: str, bounds: Sequence[float] = DEFAULT_BOUNDS) -> Histogram:
        made = Histogram(bounds)
        self._add(
            Declared(name, "histogram", text, labels),
            lambda: Family(name, "histogram", text, labels, bounds=made.bounds, distributions=made.distributions()),
        )
        return made

    def gauge(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        values: Values,
        *,
        merge: Literal["sum", "max", "min"] = "sum",
        kind: Literal["gauge", "counter"] = "gauge",
    ) -> None:
        """`kind` counter: a value that only grows and is kept elsewhere."""

        def family() -> Family:
            samples = tuple(Sample(key, value) for key, value in values().items())
            return Family(name, kind, text, tuple(labels), samples, merge=merge)

        self._add(Declared(name, kind, text, tuple(labels)), family)

    def families(self) -> tuple[Family, ...]:
        return tuple(make() for make in self._families.values())

    def _add(self, declared: Declared, make: Callable[[], Family]) -> None:
        if declared.name in self._families:
            raise ValueError(f"metric {declared.name} is there already")
        self._families[declared.name] = make
        self.declared.append(declared)
