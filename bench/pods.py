"""How fast pods come and go."""

from __future__ import annotations

import time

from bench.engine import RawEngine
from bench.node import BenchNode
from bench.processes import CpuUsed, node_processes
from bench.report import Row, median

POLL_SECONDS = 0.05
_MANY = 100
_SETTLE_SECONDS = 2.0
STUBBORN = ["sh", "-c", "trap '' TERM; while :; do sleep 3600; done"]
_STUBBORN_GRACE = 2


def side_by_side(node: BenchNode, engine: RawEngine, rounds: int, count: int = 20) -> Row:
    """The Engine API alone and podbus in turns, so that both see the same machine."""
    raw: list[float] = []
    ours: list[float] = []
    firsts: list[float] = []
    told = ""
    for turn in range(rounds):
        raw.append(engine.start_pods(count))
        engine.remove_pods()
        time.sleep(_SETTLE_SECONDS)
        names = [f"side-{turn}-{number}" for number in range(count)]
        node.listed()
        cpu = CpuUsed(node_processes(node.pid, node.data))
        node.drop(names)
        first, took = node.wait_running(count, every=POLL_SECONDS)
        firsts.append(first)
        ours.append(took)
        told = cpu.told()
        node.empty(names)
        time.sleep(_SETTLE_SECONDS)
    ratio = median(ours) / median(raw)
    each = ", ".join(f"{o:.2f}/{r:.2f}" for o, r in zip(ours, raw, strict=True))
    return Row(
        "pods20",
        f"{ratio:.2f}",
        ratio <= 1.15,
        [
            f"rounds, podbus / Engine API alone in s: {each}; medians {median(ours):.2f} / {median(raw):.2f}",
            f"first pod Running after {median(firsts):.2f} s; last round, {told}",
        ],
        {"podbus_s": ours, "engine_s": raw, "first_s": firsts, "ratio": ratio},
    )


def appear(node: BenchNode, engine: RawEngine, rounds: int) -> Row:
    """One pod at a time on an empty node, from the rename of its manifest to Running in /pods."""
    raw: list[float] = []
    ours: list[float] = []
    for turn in range(rounds):
        raw.append(engine.start_pods(1) * 1000)
        engine.remove_pods()
        time.sleep(0.3)
        name = f"appear-{turn}"
        node.listed()
        node.drop([name])
        ours.append(node.wait_running(1, every=0.005)[1] * 1000)
        node.empty([name])
        time.sleep(0.3)
    return Row(
        "appear",
        f"{median(ours):.0f} ms",
        median(ours) <= 1000,
        [f"{min(ours):.0f} to {max(ours):.0f} ms in {rounds}; the Engine API alone takes {median(raw):.0f} ms of it"],
        {"podbus_ms": ours, "engine_ms": raw},
    )


def vanish(node: BenchNode, rounds: int) -> Row:
    """A pod that ignores TERM for its grace of 2 s, and one that ends at once."""
    late: list[float] = []
    obedient: list[float] = []
    for turn in range(rounds):
        for name, command, grace, into in (
            (f"stubborn-{turn}", STUBBORN, _STUBBORN_GRACE, late),
            (f"obedient-{turn}", None, 5, obedient),
        ):
            node.drop([name], grace=grace, command=command)
            node.wait_running(1, every=POLL_SECONDS)
            time.sleep(0.5)
            node.withdraw([name])
            took = node.wait_gone(name)
            into.append((took - (grace if command else 0)) * 1000)
    return Row(
        "vanish",
        f"{median(late):.0f} ms",
        max(late) <= 2000,
        [
            f"a pod that ignores TERM is gone {min(late):.0f} to {max(late):.0f} ms after its grace of 2 s",
            f"a pod that ends on TERM is gone {median(obedient):.0f} ms after its manifest",
        ],
        {"after_grace_ms": late, "obedient_ms": obedient},
    )


def hundred(node: BenchNode, engine: RawEngine, count: int = _MANY) -> Row:
    """All manifests at once, with the Engine API's own rate just before. The pods stay, for the rows that follow."""
    alone = 20 / engine.start_pods(20)
    engine.remove_pods()
    time.sleep(_SETTLE_SECONDS)
    node.listed()
    cpu = CpuUsed(node_processes(node.pid, node.data))
    node.drop(f"many-{number}" for number in range(count))
    first, took = node.wait_running(count, every=2 * POLL_SECONDS, within=300)
    return Row(
        "pods100",
        f"{took:.1f} s",
        took <= 18 if count == _MANY else None,
        [
            f"{count / took:.1f} pods/s, the first after {first:.2f} s; the Engine API alone just before:"
            f" {alone:.1f} pods/s",
            cpu.told(),
        ],
        {"pods": count, "seconds": took, "first_s": first, "engine_pods_per_s": alone, "cpu_s": cpu.so_far()},
    )
