"""What probing costs."""

from __future__ import annotations

import time

from bench.node import BenchFailed, BenchNode
from bench.processes import cpu_over, engine_processes, node_processes
from bench.report import Row

COUNT = 50
SERVER = ["sh", "-c", "mkdir /w; echo ok > /w/ok; exec httpd -f -p 80 -h /w"]
PROBE = {"httpGet": {"path": "/ok", "port": 80}, "periodSeconds": 1}
_SETTLE_SECONDS = 20.0
_READY_SECONDS = 180.0
_TARGET = 5.0


def fifty(node: BenchNode, seconds: float) -> Row:
    """Fifty pods, each asked by HTTP once a second, that all answer."""
    names = [f"probed-{number}" for number in range(COUNT)]
    node.drop(names, command=SERVER, probe=PROBE)
    began = time.monotonic()
    while (ready := node.listed().count(b'"type":"Ready","status":"True"')) < COUNT:
        if time.monotonic() - began > _READY_SECONDS:
            raise BenchFailed(f"{ready} of {COUNT} probed pods are Ready after {_READY_SECONDS:.0f} s")
        time.sleep(0.5)
    took = time.monotonic() - began
    time.sleep(_SETTLE_SECONDS)
    ours, theirs = node_processes(node.pid, node.data), engine_processes()
    used = cpu_over([*ours, *theirs], seconds)
    worker = sum(used[pid] for pid, name in ours.items() if name.startswith("podworker"))
    others = sum(used[pid] for pid, name in ours.items() if not name.startswith("podworker"))
    node.empty(names)
    return Row(
        "probes50",
        f"{worker:.2f} %",
        worker <= _TARGET,
        [
            f"over {seconds:.0f} s: the other processes of the agent {others:.2f} %,"
            f" the engine {sum(used[pid] for pid in theirs):.2f} %; all pods Ready after {took:.1f} s"
        ],
        {"seconds": seconds, "worker": worker, "agent_besides": others, "ready_s": took},
    )
