"""`python -m bench [--quick] [--rows a,b] [--out FILE.json]`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import face, machine, pods, probes, rest, streams
from bench.engine import RawEngine
from bench.node import BenchFailed, BenchNode
from bench.report import MEASURES, Row, table, write_json

KEYS = tuple(measure.key for measure in MEASURES)
_WITH_MANY = ("pods100", "rest", "sampling", "memory", *face.PAGES)
"""Rows that need a hundred pods."""
_STREAMS = ("exec", "bytes-out", "bytes-in", "log")
_SETTLE_SECONDS = 20.0


def main() -> int:
    arguments = _arguments()
    if os.geteuid() != 0:
        print("bench: this takes root: the engine's socket, and the memory of others' processes", file=sys.stderr)
        return 1
    engine = RawEngine()
    about = machine.about(engine)
    run = _Run(engine, quick=arguments.quick, patience=arguments.patience)
    try:
        run.measure(arguments.rows)
    except BenchFailed as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    finally:
        if run.rows:
            machine_line = (
                f"podbus on {about['cores']} cores, {about['memory_mb']} MB, Linux {about['kernel']},"
                f" Python {about['python']}, Docker {about['engine']}; {about['date']}"
            )
            lines = [machine_line, ""]
            print(table(run.rows, about=lines))
            if arguments.out is not None:
                write_json(arguments.out, run.rows, about)
        engine.remove_pods()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure a node on this machine.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and shorter windows: a first look")
    parser.add_argument("--rows", type=_rows, default=KEYS, help=f"only these, of {','.join(KEYS)}")
    parser.add_argument("--out", type=Path, help="write all numbers to this JSON file too")
    parser.add_argument(
        "--patience", type=float, default=60.0, metavar="S", help="wait so long for a quiet machine before each row"
    )
    return parser.parse_args()


def _rows(text: str) -> tuple[str, ...]:
    asked = text.split(",")
    if unknown := sorted(set(asked) - set(KEYS)):
        raise argparse.ArgumentTypeError(f"no such row: {', '.join(unknown)}; there are {', '.join(KEYS)}")
    return tuple(key for key in KEYS if key in asked)


class _Run:
    """One node, its rows in an order in which none disturbs the next."""

    def __init__(self, engine: RawEngine, *, quick: bool, patience: float) -> None:
        self._engine = engine
        self._quick = quick
        self._patience = patience
        self.rows: dict[str, Row] = {}

    def measure(self, keys: tuple[str, ...]) -> None:
        engine = self._engine
        with BenchNode(engine) as node:
            if "appear" in keys:
                self._take(lambda: pods.appear(node, engine, 5 if self._quick else 10))
            if "vanish" in keys:
                self._take(lambda: pods.vanish(node, 2 if self._quick else 5))
            if "pods20" in keys:
                self._take(lambda: pods.side_by_side(node, engine, 2 if self._quick else 5))
            if "probes50" in keys:
                self._take(lambda: probes.fifty(node, self._rest_seconds))
            if any(key in keys for key in _WITH_MANY):
                self._with_many(node, keys)
            if "healthz" in keys:
                self._take(lambda: face.healthz(node, self._http_seconds))
            if any(key in keys for key in _STREAMS):
                self._take_all(lambda: streams.exec_rows(node, 2 if self._quick else 5), keys)
            if "log-tail" in keys:
                self._take(lambda: streams.tail_row(node, 2 if self._quick else 5))
            if "rest" in self.rows:
                node.stop()
                self._say("the engine without the agent ...")
                time.sleep(2)
                rest.less_without_agent(self.rows["rest"], node, engine, self._rest_seconds)
            self._say("removing the pods ...")

    def _with_many(self, node: BenchNode, keys: tuple[str, ...]) -> None:
        self._take(lambda: pods.hundred(node, self._engine))
        if "pods100" not in keys:
            del self.rows["pods100"]
        time.sleep(_SETTLE_SECONDS)
        if "rest" in keys:
            self._take(lambda: rest.cpu_at_rest(node, self._engine, self._rest_seconds))
        if "sampling" in keys:
            self._take(lambda: rest.sampling(node, self._rest_seconds))
        for key in face.PAGES:
            if key in keys:
                self._take(lambda key=key: face.page(node, key, self._http_seconds))  # type: ignore[misc]
        if "memory" in keys:  # after the API had work: that is how it lives
            self._take(lambda: _memory_after_work(node))

    @property
    def _rest_seconds(self) -> float:
        return 20.0 if self._quick else 60.0

    @property
    def _http_seconds(self) -> float:
        return 1.0 if self._quick else 4.0

    def _take(self, work: Callable[[], Row]) -> None:
        self._take_all(lambda: [work()], KEYS)

    def _take_all(self, work: Callable[[], list[Row]], keys: tuple[str, ...]) -> None:
        busy = machine.wait_until_quiet(self._patience)
        before = machine.load_average()
        for made in work():
            if made.key not in keys:
                continue
            self._say(f"{made.key}: {made.value}")
            made.parts.append(
                f"load average {before:.2f} before, {machine.load_average():.2f} after;"
                f" beside us {busy:.0f} % of a core was busy"
            )
            made.numbers |= {"busy_percent_before": busy, "load_before": before}
            self.rows[made.key] = made

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


def _memory_after_work(node: BenchNode) -> Row:
    link = node.endpoint.connect()
    for path in ("/pods", "/stats/summary"):
        for _ in range(50):
            link.get(path)
    link.close()
    return rest.memory_at_rest(node)


if __name__ == "__main__":
    sys.exit(main())
