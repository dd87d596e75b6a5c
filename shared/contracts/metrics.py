"""What a process counts and measures, on its way to the API's pages."""

from __future__ import annotations

from typing import Literal

import msgspec


class Sample(msgspec.Struct, frozen=True):
    """One series of a counter or gauge."""

    labels: tuple[str, ...]
    """Values, in the order of the family's names."""
    value: float


class Distribution(msgspec.Struct, frozen=True):
    """One series of a histogram."""

    labels: tuple[str, ...]
    counts: tuple[int, ...]
    """Observations per bucket (not added up), one more than there are bounds: the last is +Inf's."""
    sum: float


class Family(msgspec.Struct, frozen=True, omit_defaults=True):
    """All series of one name."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    samples: tuple[Sample, ...] = ()
    bounds: tuple[float, ...] = ()
    """Upper ends of a histogram's buckets, rising, without +Inf."""
    distributions: tuple[Distribution, ...] = ()
    merge: Literal["sum", "max", "min"] = "sum"
    """What the same series of several processes makes."""


class MetricsReport(msgspec.Struct, frozen=True):
    """<service>.e.metrics.<process>: every ten seconds; the last one of a process counts."""

    at: float
    """Seconds since the epoch."""
    families: tuple[Family, ...]
