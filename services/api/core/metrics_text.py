"""Families of several processes -> one page in Prometheus' text format 0.0.4 (kubelet: sorted by name)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from math import isinf, isnan

from shared.contracts.metrics import Distribution, Family, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_EXPONENT_FROM = 1e6
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
_MERGES: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min}


def merged(reports: Iterable[Sequence[Family]]) -> list[Family]:
    """One family per name, sorted; the same series of several processes made into one. A family that another process
    shapes differently (a version of podbus apart) is left out of the sum."""
    found: dict[str, list[Family]] = {}
    for families in reports:
        for family in families:
            others = found.setdefault(family.name, [])
            if not others or (others[0].labels, others[0].bounds) == (family.labels, family.bounds):
                others.append(family)
    return [_one(found[name]) for name in sorted(found)]


def page(families: Iterable[Family]) -> bytes:
    """Sorted as given. A labelled family without series isn't there (kubelet)."""
    lines: list[str] = []
    for family in families:
        if not family.samples and not family.distributions:
            continue
        lines += (f"# HELP {family.name} [ALPHA] {family.help}", f"# TYPE {family.name} {family.kind}")
        lines += _sample_lines(family) if family.kind != "histogram" else _histogram_lines(family)
    return "".join(f"{line}\n" for line in lines).encode()


def number(value: float) -> str:
    """As Go writes it: the shortest digits, with an exponent below 1e-4 and from 1e6 on."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(float(value))
    if "e" not in text and abs(value) < _EXPONENT_FROM:
        return text.removesuffix(".0")
    sign = "-" if value < 0 else ""
    digits, _, exponent = text.lstrip("-").partition("e")
    whole, _, part = digits.partition(".")
    power = int(exponent or 0) + len(whole) - 1
    mantissa = (whole + part).rstrip("0")
    return f"{sign}{mantissa[0]}{'.' if mantissa[1:] else ''}{mantissa[1:]}e{power:+03d}"


def _one(families: Sequence[Family]) -> Family:
    first = families[0]
    if len(families) == 1:
        return _sorted(first)
    merge = _MERGES[first.merge]
    values: dict[tuple[str, ...], list[float]] = {}
    counts: dict[tuple[str, ...], list[Distribution]] = {}
    for family in families:
        for sample in family.samples:
            values.setdefault(sample.labels, []).append(sample.value)
        for one in family.distributions:
            counts.setdefault(one.labels, []).append(one)
    samples = tuple(Sample(labels, merge(given)) for labels, given in values.items())
    distributions = tuple(
        Distribution(
            labels,
            tuple(sum(column) for column in zip(*(one.counts for one in given), strict=True)),
            sum(one.sum for one in given),
        )
        for labels, given in counts.items()
    )
    return _sorted(
        Family(first.name, first.kind, first.help, first.labels, samples, first.bounds, distributions, first.merge)
    )


def _sorted(family: Family) -> Family:
    return Family(
        family.name,
        family.kind,
        family.help,
        family.labels,
        tuple(sorted(family.samples, key=lambda one: one.labels)),
        family.bounds,
        tuple(sorted(family.distributions, key=lambda one: one.labels)),
        family.merge,
    )


def _sample_lines(family: Family) -> list[str]:
    return [f"{family.name}{_labels(family.labels, one.labels)} {number(one.value)}" for one in family.samples]


def _histogram_lines(family: Family) -> list[str]:
    lines: list[str] = []
    bounds = [*(number(bound) for bound in family.bounds), "+Inf"]
    for one in family.distributions:
        sums = list(accumulate(one.counts))
        for bound, count in zip(bounds, sums, strict=True):
            lines.append(f"{family.name}_bucket{_labels((*family.labels, 'le'), (*one.labels, bound))} {count}")
        labels = _labels(family.labels, one.labels)
        lines += (f"{family.name}_sum{labels} {number(one.sum)}", f"{family.name}_count{labels} {sums[-1]}")
    return lines


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    """Sorted by name, but for a histogram's `le`, which stands last (client_golang)."""
    if not names:
        return ""
    pairs = sorted(zip(names, values, strict=True), key=lambda pair: (pair[0] == "le", pair[0]))
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in pairs) + "}"
