"""Prometheus' text format, read as strictly as its own parsers do."""

from __future__ import annotations

import re
from typing import NamedTuple

_SAMPLE = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)(?: (-?\d+))?'
)
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"')
_ESCAPE = re.compile(r"\\(.)")


class Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float
    at: int | None


class Exposition(NamedTuple):
    types: dict[str, str]
    helps: dict[str, str]
    samples: list[Sample]

    def of(self, name: str, **labels: str) -> list[Sample]:
        return [one for one in self.samples if one.name == name and labels.items() <= one.labels.items()]


def parse_exposition(text: str) -> Exposition:
    """Fails on a line of another form, a family told twice, a sample outside its family, and on a double."""
    types: dict[str, str] = {}
    helps: dict[str, str] = {}
    samples: list[Sample] = []
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    assert text.endswith("\n")
    current = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current, _, told = line[7:].partition(" ")
            assert current not in helps, f"{current} told twice"
            helps[current] = told
        elif line.startswith("# TYPE "):
            name, _, kind = line[7:].partition(" ")
            assert name == current
            types[name] = kind
        else:
            found = _SAMPLE.fullmatch(line)
            assert found is not None, line
            name, raw, value, at = found.groups()
            assert name in _names(current, types.get(current, "")), f"{name} below {current}"
            labels = {
                key: _ESCAPE.sub(lambda one: "\n" if one[1] == "n" else one[1], told)
                for key, told in _LABEL.findall(raw or "")
            }
            key = (name, tuple(sorted(labels.items())))
            assert key not in seen, f"double: {line}"
            seen.add(key)
            samples.append(Sample(name, labels, float(value), None if at is None else int(at)))
    return Exposition(types, helps, samples)


def _names(family: str, kind: str) -> tuple[str, ...]:
    """Of the samples below a family's head."""
    return (f"{family}_bucket", f"{family}_sum", f"{family}_count") if kind == "histogram" else (family,)
