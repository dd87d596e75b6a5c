"""`run(build)`: the only process skeleton. Whoever knows one service knows five.

settings -> logging -> lock -> bus -> build -> recover -> subscribe -> READY -> wait -> stop intake -> drain
-> exit code
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

import uvloop

from shared.bus import Bus, connect, load_credentials
from shared.contracts.metrics import MetricsReport
from shared.contracts.registry import METRICS
from shared.contracts.subject import Hint, ServiceName
from shared.runtime.clock import Clock, SystemClock
from shared.runtime.filelock import FileLock
from shared.runtime.health import HealthFile, Watchdog, clear_dead_replicas, keep_beating
from shared.runtime.logging import set_up_logging
from shared.runtime.metrics import Metrics
from shared.runtime.process_metrics import Database, bus_metrics, database_metrics, process_metrics
from shared.runtime.settings import Settings, SettingsError, load_settings
from shared.runtime.tasks import Forever, GuardedTasks

log = logging.getLogger("podbus.service")

EXIT_ASKED = 0
EXIT_FAILED = 1
EXIT_DEADLINE = 2
EXIT_BUS = 70
EXIT_CONFIG = 78
METRICS_SECONDS = 10.0
"""How often a process tells what it counts and measures."""
STOP_SECONDS = 10.0
"""From SIGTERM to the end: what isn't done then is left to the next start."""


def _installed_version() -> str:
    try:
        return version("podbus")
    except PackageNotFoundError:
        return "0.0.0"


_VERSION = _installed_version()
"""Asked for at the import: under `podbus up` once, before the services are forked (2 MiB in each of them else)."""


def package_version() -> str:
    """podbus' own version; "0.0.0" when it runs without being installed."""
    return _VERSION


@dataclass(frozen=True)
class Context:
    """What `build` gets."""

    settings: Settings
    bus: Bus
    clock: Clock
    process: str
    """`source`, `podworker-1`: the name in logs and files."""
    restart_reason: str = ""
    """Why its predecessor under `podbus up` ended, as a sentence to be told as an event; "" = this is the first."""
    metrics: Metrics = field(default_factory=Metrics)
    """The process's own; `build` adds to them."""


async def _nothing() -> None:
    return None


async def tell_metrics(context: Context, hint: Hint[MetricsReport]) -> None:
    """A guarded task."""
    while True:
        report = MetricsReport(at=context.clock.now(), families=context.metrics.families())
        await context.bus.hint(hint, report, context.process)
        await asyncio.sleep(METRICS_SECONDS)


@dataclass
class Service:
    """What `build` returns: parts of one process, in the order in which run() uses them."""

    recover: Callable[[], Awaitable[None]] = _nothing
    """Read what is on disk; list what is outside. Before any request is served."""
    subscribe: Callable[[], Awaitable[None]] = _nothing
    """Serve requests and hints."""
    tasks: Mapping[str, Forever] = field(default_factory=dict)
    """Run for ever; whichever ends, ends the process. Started before `ready`."""
    ready: Callable[[], Awaitable[None]] = _nothing
    """Returns when the first complete lists are in: only then is readiness announced."""
    stop: Callable[[], Awaitable[None]] = _nothing
    """After SIGTERM: finish or checkpoint, within STOP_SECONDS."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Shown by `nats micro info`."""
    facts: Callable[[], Mapping[str, object]] = dict
    """For the health file."""
    databases: Sequence[Database] = ()
    """Measured."""


Build = Callable[[Context], Awaitable[Service]]


def run(
    name: ServiceName,
    build: Build,
    *,
    settings: Settings | None = None,
    worker: int | None = None,
    ready_fd: int | None = None,
    restart_reason: str = "",
) -> int:
    """Run one service to its end; the process's exit code.

    `worker`: tells the replicas of podworker apart under `podbus up`. `ready_fd`: one line is written there when the
    service is ready (the supervisor reads it); else PODBUS_READY_FD. `restart_reason`: for Context.
    """
    process = _process_name(name, worker)
    if settings is None:
        try:
            settings = load_settings()
        except SettingsError as error:
            for problem in error.problems:
                sys.stderr.write(f"{process}: {problem}\n")
            return EXIT_CONFIG
    set_up_logging(process, settings.log_level)
    if ready_fd is None and (text := os.environ.get("PODBUS_READY_FD")):
        ready_fd = int(text)
    try:
        return uvloop.run(_Runner(name, process, build, settings, ready_fd, restart_reason).run())
    except KeyboardInterrupt:
        return EXIT_ASKED


def _process_name(name: str, worker: int | None) -> str:
    """Replicas need names of their own, in containers too, where nothing numbers them (pids are the host's there)."""
    if worker is not None:
        return f"{name}-{worker}"
    return f"{name}-{os.getpid()}" if name == "podworker" else name


class _Runner:
    def __init__(
        self,
        name: ServiceName,
        process: str,
        build: Build,
        settings: Settings,
        ready_fd: int | None,
        restart_reason: str,
    ) -> None:
        self._name: ServiceName = name
        self._process = process
        self._build = build
        self._settings = settings
        self._ready_fd = ready_fd
        self._restart_reason = restart_reason
        self._asked = asyncio.Event()
        self._service = Service()
        self._is_ready = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked.set)
        watchdog = Watchdog()
        watchdog.start()
        clear_dead_replicas(self._settings.paths.run, self._name, now=time.time())
        health = HealthFile(self._settings.paths.health(self._process))
        tasks = GuardedTasks()
        tasks.start({"heartbeat": lambda: keep_beating(watchdog, health, self._facts)})
        try:
            return await self._serve(tasks)
        finally:
            await tasks.cancel()
            health.remove()

    def _facts(self) -> Mapping[str, object]:
        return {"pid": os.getpid(), "ready": self._is_ready, **self._service.facts()}

    async def _serve(self, tasks: GuardedTasks) -> int:
        lock = FileLock(self._settings.paths.run / f"{self._name}.lock")
        if self._name != "podworker" and not await self._alone(lock):
            return EXIT_ASKED
        bus = await self._connect()
        if bus is None:
            return EXIT_ASKED
        try:
            context = Context(self._settings, bus, SystemClock(), self._process, self._restart_reason)
            process_metrics(context.metrics, self._process)
            bus_metrics(context.metrics, bus, self._process)
            reason = await self._first(self._start(context, tasks), tasks, bus)
            if not reason:
                self._announce_ready()
                reason = await self._first(asyncio.Event().wait(), tasks, bus)
        except Exception:  # the boundary: told, and the supervisor starts it again
            log.exception("phase=failed")
            reason = "failed"
        self._is_ready = False
        log.info("phase=stopping reason=%s", reason)
        return await self._end(reason, bus, tasks)

    async def _alone(self, lock: FileLock) -> bool:
        """Wait until no other process of this service runs on this data directory; False when asked to end first."""
        told = False
        while not lock.try_acquire():
            if not told:
                log.warning("phase=waiting another %s runs on %s", self._name, self._settings.data)
                told = True
            try:
                await asyncio.wait_for(self._asked.wait(), 0.5)
                return False
            except TimeoutError:
                continue
        return True

    async def _connect(self) -> Bus | None:
        """Credentials and server may come later than we do (any start order works)."""
        path = self._settings.paths.bus_credentials(self._name)
        told = False
        while not path.exists():
            if not told:
                log.info("phase=connecting waiting for %s", path)
                told = True
            try:
                await asyncio.wait_for(self._asked.wait(), 0.2)
                return None
            except TimeoutError:
                continue
        connecting = asyncio.ensure_future(
            connect(load_credentials(path), node=self._settings.node_name, service=self._name, name=self._process)
        )
        asked = asyncio.ensure_future(self._asked.wait())
        await asyncio.wait({connecting, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not connecting.done():
            connecting.cancel()
            return None
        asked.cancel()
        return connecting.result()

    async def _start(self, context: Context, tasks: GuardedTasks) -> None:
        self._service = service = await self._build(context)
        bus = context.bus
        await service.recover()
        await bus.announce(package_version(), {"pid": str(os.getpid()), **service.metadata})
        await service.subscribe()
        database_metrics(context.metrics, self._process, service.databases)
        tasks.start(service.tasks)
        if (hint := METRICS.get(self._name)) is not None:
            tasks.start({"metrics": lambda: tell_metrics(context, hint)})
        await bus.flush()
        await service.ready()

    async def _first(self, work: Awaitable[object], tasks: GuardedTasks, bus: Bus) -> str:
        """ "" when the work is done, else why the process must end. Errors of the work are raised."""
        doing = asyncio.ensure_future(work)
        ended = asyncio.ensure_future(tasks.wait())
        asked = asyncio.ensure_future(self._asked.wait())
        closed = asyncio.ensure_future(bus.closed.wait())
        try:
            await asyncio.wait({doing, ended, asked, closed}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return "asked"
            if closed.done():
                return "bus closed"
            if ended.done():
                return ended.result()
            doing.result()
            return ""
        finally:
            for future in (doing, ended, asked, closed):
                future.cancel()

    def _announce_ready(self) -> None:
        self._is_ready = True
        log.info("phase=ready pid=%d", os.getpid())
        if self._ready_fd is not None:
            try:
                os.write(self._ready_fd, f"{self._process} ready\n".encode())
            except OSError as error:
                log.debug("nobody reads readiness error=%s", error)

    async def _end(self, reason: str, bus: Bus, tasks: GuardedTasks) -> int:
        code = EXIT_ASKED if reason == "asked" else EXIT_BUS if reason == "bus closed" else EXIT_FAILED
        try:
            await asyncio.wait_for(self._service.stop(), STOP_SECONDS)
        except TimeoutError:
            log.error("phase=stopping not finished within %.0f s", STOP_SECONDS)
            code = code or EXIT_DEADLINE
        except Exception:  # the boundary: an error at the end must not hide the reason
            log.exception("phase=stopping failed")
            code = code or EXIT_FAILED
        await tasks.cancel()
        await bus.drain()
        log.info("phase=ended code=%d", code)
        return code
