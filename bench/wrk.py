"""Load by wrk (Debian: `apt-get install wrk`), a client that costs a tenth of one in Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

from bench.http_load import Endpoint

CONNECTIONS = 8
_UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60000.0}


@dataclass(frozen=True)
class Load:
    per_second: float
    p99: float
    """Milliseconds."""
    failed: int
    """Answers other than 2xx, and broken connections."""


def wrk_load(endpoint: Endpoint, path: str, seconds: float) -> Load | None:
    """None where wrk isn't installed. Raises ValueError when it says something unknown."""
    program = shutil.which("wrk")
    if program is None:
        return None
    host, port = endpoint.address
    url = f"{'https' if endpoint.authorities else 'http'}://{host}:{port}{path}"
    command = [program, "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "--latency"]
    if endpoint.token:
        command += ["-H", f"Authorization: Bearer {endpoint.token}"]
    said = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    rate, p99 = re.search(r"Requests/sec:\s+([\d.]+)", said), re.search(r"99%\s+([\d.]+)([a-z]+)", said)
    if rate is None or p99 is None:
        raise ValueError(f"wrk said: {said}")
    other = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", said)
    failed = int(other[1]) if other else 0
    failed += sum(map(int, broken.groups())) if broken else 0
    return Load(float(rate[1]), float(p99[1]) * _UNITS[p99[2]], failed)
