"""A node of fake services under the real supervisor, on a real nats-server: `python -m ... DATA MODE`.

Each service appends what happens to `DATA/trace`. Modes: front, detach; with `+NAME` that service never gets ready,
with `-NAME` it doesn't end by itself.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from cli import node_processes, up
from shared.contracts.subject import SERVICES, ServiceName
from shared.runtime.config import KubeletConfig
from shared.runtime.service import Build, Context, Service
from shared.runtime.settings import Settings


def _build(data: Path, mode: str) -> Build:
    async def build(context: Context) -> Service:
        name = context.process

        def trace(what: str) -> None:
            with (data / "trace").open("a") as file:
                file.write(f"{name} {what}\n")

        async def ready() -> None:
            await context.bus.ensure_buckets()
            if f"+{name}" in mode:
                raise RuntimeError("this one never gets ready")

        async def stop() -> None:
            trace("stop")
            if f"-{name}" in mode:
                await asyncio.sleep(60)

        async def work() -> None:
            await asyncio.Event().wait()

        trace(f"start {os.getpid()} {context.restart_reason}".rstrip())
        return Service(ready=ready, stop=stop, tasks={"work": work})

    return build


def main() -> int:
    data, mode = Path(sys.argv[1]), sys.argv[2]
    settings = Settings(data=data, node_name="n1", workers=2, port=19999, config=KubeletConfig())
    builds: dict[ServiceName, Build] = {name: _build(data, mode) for name in SERVICES}
    node_processes._STOP_SECONDS = dict.fromkeys(SERVICES, 2.0)
    return up.start(settings, lambda: builds, is_detached=mode.startswith("detach"), preflight=False)


if __name__ == "__main__":
    sys.exit(main())
