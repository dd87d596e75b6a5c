"""A measured row, the table for people and the file for machines."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

NOT_YET = "not there yet"


@dataclass(frozen=True)
class Measure:
    """What is measured, and what it's compared with."""

    key: str
    title: str
    kubelet: str
    """kubelet 1.20.2 standalone on two cores; "" = not known."""
    target: str


MEASURES = (
    Measure("pods20", "20 pods Running, x the Engine API alone", "1.36-1.46", "1.15"),
    Measure("pods100", "100 pods Running", "22.7 s", "18 s"),
    Measure("appear", "manifest dropped -> Running in /pods, median", "", "1 s"),
    Measure("vanish", "manifest removed -> gone from /pods, less the grace, median", "", "2 s"),
    Measure("probes50", "50 pods with an http probe each second: the worker", "", "5 %"),
    Measure("rest", "at rest, 100 pods: agent + its share of the engine", "7.3 + 3.7 %", "2.5 + 0.5 %"),
    Measure("sampling", "a round of samples, 100 pods: CPU; stats at rest", "", "60 ms, 1 %"),
    Measure("memory", "memory of all processes, PSS, 100 pods", "109 MB", "150 MB"),
    Measure("list", "GET /pods, p50 with 100 pods", "3.3 ms", "3 ms"),
    Measure("summary", "GET /stats/summary, p50 with 100 pods", "30 ms", "5 ms"),
    Measure("cadvisor", "GET /metrics/cadvisor, p50 with 100 pods", "214 ms", "20 ms"),
    Measure("healthz", "GET /healthz on loopback (no TLS), p50", "", ""),
    Measure("exec", "exec of `true`, median", "", "110 ms"),
    Measure("bytes-out", "256 MiB out of a container by exec, TLS", "110 MB/s", "200 MB/s"),
    Measure("bytes-in", "64 MiB into a container by exec, TLS", "", "150 MB/s"),
    Measure("log", "a log of 200,000 lines, TLS", "5 MB/s", "50 MB/s"),
    Measure("log-tail", "first byte of the last 10 lines of a 1 GiB log, TLS", "", "50 ms"),
)


@dataclass
class Row:
    """One measured figure. `parts` are sentences that explain it, `numbers` what it was made of."""

    key: str
    value: str
    met: bool | None = None
    """None = there is nothing to compare with."""
    parts: list[str] = field(default_factory=list)
    numbers: dict[str, object] = field(default_factory=dict)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0..1) of the values don't exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def table(rows: Mapping[str, Row], *, about: Sequence[str] = ()) -> str:
    """All rows in MEASURES' order, each with its parts below."""
    head = ("measure", "kubelet 1.20.2", "target", "podbus", "")
    lines: list[tuple[str, ...]] = [head]
    parts: dict[int, list[str]] = {}
    for measure in MEASURES:
        row = rows.get(measure.key)
        if row is None:
            continue
        verdict = "" if row.met is None else "met" if row.met else "MISSED"
        lines.append((measure.title, measure.kubelet or "-", measure.target or "-", row.value, verdict))
        parts[len(lines) - 1] = row.parts
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    out = list(about)
    for number, line in enumerate(lines):
        out.append("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        out += [f"    {part}" for part in parts.get(number, ())]
    return "\n".join(out)


def write_json(path: Path, rows: Mapping[str, Row], about: Mapping[str, object]) -> None:
    """Everything measured, for a comparison with another run."""
    measures = {measure.key: asdict(measure) for measure in MEASURES}
    content = {"about": about, "rows": [{**measures[key], **asdict(row)} for key, row in rows.items()]}
    path.write_text(json.dumps(content, indent=1) + "\n")
