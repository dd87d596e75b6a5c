"""What a node costs while nothing happens: CPU and memory."""

from __future__ import annotations

import time
from collections.abc import Mapping

from bench.engine import RawEngine
from bench.node import BenchNode
from bench.processes import (
    cpu_over,
    engine_processes,
    file_pages_alone,
    memory,
    name_of,
    node_processes,
    same_build,
)
from bench.report import Row
from services.stats.handlers.collect import INTERVAL_SECONDS

MIB = 1 << 20


def cpu_at_rest(node: BenchNode, engine: RawEngine, seconds: float) -> Row:
    """The agent's CPU, and the engine's with the agent; `less_without_agent` completes it when the agent has ended."""
    ours, theirs = node_processes(node.pid, node.data), engine_processes()
    began = time.time()
    used = cpu_over([*ours, *theirs], seconds)
    others = engine.events_of_others(began, time.time(), node.instance)
    agent = sum(used[pid] for pid in ours)
    return Row(
        "rest",
        f"{agent:.2f} + ? %",
        None,
        [
            f"over {seconds:.0f} s: " + _listed(ours, used),
            "engine with the agent: " + _listed(theirs, used) + _told_others(others),
        ],
        {
            "seconds": seconds,
            "agent": agent,
            "engine_with_agent": sum(used[pid] for pid in theirs),
            "processes": {name: used[pid] for pid, name in ours.items()},
            "events_of_others": others,
        },
    )


def sampling(node: BenchNode, seconds: float) -> Row:
    """All that stats uses while nobody asks, by the rounds of the window: a round costs no more than that."""
    ours = [pid for pid, name in node_processes(node.pid, node.data).items() if name == "stats"]
    percent = sum(cpu_over(ours, seconds).values())
    milliseconds = percent / 100 * INTERVAL_SECONDS * 1000
    return Row(
        "sampling",
        f"{milliseconds:.0f} ms, {percent:.2f} %",
        milliseconds < 60 and percent < 1,
        [f"over {seconds:.0f} s, a round each {INTERVAL_SECONDS:.0f} s"],
        {"seconds": seconds, "percent": percent, "milliseconds": milliseconds},
    )


def less_without_agent(row: Row, node: BenchNode, engine: RawEngine, seconds: float) -> Row:
    """The agent has ended and its pods run on: what the engine takes now isn't the agent's."""
    theirs = engine_processes()
    began = time.time()
    used = cpu_over(theirs, seconds)
    others = engine.events_of_others(began, time.time(), node.instance)
    alone = sum(used.values())
    agent, together = row.numbers["agent"], row.numbers["engine_with_agent"]
    assert isinstance(agent, float) and isinstance(together, float)
    share = max(0.0, together - alone)
    row.value = f"{agent:.2f} + {share:.2f} %"
    row.met = agent <= 2.5 and share <= 0.5
    row.parts.append("engine without the agent: " + _listed(theirs, used) + _told_others(others))
    row.numbers |= {"engine_alone": alone, "engine_share": share, "events_of_others_alone": others}
    return row


def memory_at_rest(node: BenchNode) -> Row:
    """PSS of every process. The file pages are counted once and as if nobody else used them: a Python of the same build
    beside us (this benchmark is one) would make podbus look smaller than it is."""
    ours = node_processes(node.pid, node.data)
    each = {pid: memory(pid) for pid in ours}
    anonymous = sum(one.anonymous for one in each.values())
    pss = sum(one.pss for one in each.values())
    file_alone = file_pages_alone(ours)
    total = anonymous + file_alone
    twins = same_build(ours, of=node.pid)
    parts = [
        f"anonymous {anonymous / MIB:.1f} + file {file_alone / MIB:.1f} MiB (each file page once, as if alone)",
        ", ".join(
            f"{name} {each[pid].pss / MIB:.1f} ({each[pid].anonymous / MIB:.1f} anonymous)"
            for pid, name in sorted(ours.items(), key=lambda item: -each[item[0]].pss)
        ),
        f"plain PSS {pss / MIB:.1f} MiB, with {len(twins)} other processes of the same Python build beside it",
    ]
    return Row(
        "memory",
        f"{total / MIB:.0f} MiB",
        total / MIB <= 150,
        parts,
        {
            "total": total,
            "anonymous": anonymous,
            "file_alone": file_alone,
            "pss": pss,
            "same_build": [name_of(pid) for pid in twins],
            "processes": {
                name: {"pss": each[pid].pss, "anonymous": each[pid].anonymous, "file": each[pid].file}
                for pid, name in ours.items()
            },
        },
    )


def _listed(names: Mapping[int, str], used: Mapping[int, float]) -> str:
    return ", ".join(f"{name} {used[pid]:.2f}" for pid, name in sorted(names.items(), key=lambda item: -used[item[0]]))


def _told_others(events: int) -> str:
    return f" (and {events} events of others' containers: not quiet)" if events else ""
