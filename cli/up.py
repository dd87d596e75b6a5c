"""`podbus up`: preflight, first start, migrations, then the supervisor with nats-server and the services."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cli.child import fork, limit_arenas
from cli.console import Console, complain
from cli.detach import READY_LINE, detach
from cli.first_start import first_start, load_bus_server, make_directories
from cli.nats_config import find_server, server_version
from cli.preflight import machine_faults, node_faults, node_warnings
from cli.running import Running, forget_running, running, supervisor_lock, write_running
from cli.sd_notify import notify
from cli.supervisor import EXIT_FAILED, START_SECONDS, Supervisor
from shared.contracts.subject import SERVICES, ServiceName
from shared.runtime.config_flags import CONFIG_FLAGS
from shared.runtime.filelock import FileLock
from shared.runtime.paths import DataPaths
from shared.runtime.service import EXIT_CONFIG, Build
from shared.runtime.settings import DEFAULT_SANDBOX_IMAGE, Settings, SettingsError, load_settings

_BUS_PORT_SECONDS = 6.0
"""So long the bus's port may still be held by a nats-server whose supervisor was killed."""

_SET_UP_SECONDS = 30.0
"""What comes before the processes' own start: migrations, keys, imports."""
_POLL_SECONDS = 0.1

_LOADED_LATER = ("docker", "cli.node_processes")
"""What services import only in their adapters: here it's there once for all workers (10 MiB each)."""

_PATHS = ("config", "config_dir", "data", "manifests", "kubeconfig")

LoadBuilds = Callable[[], Mapping[ServiceName, Build]]


def environment(arguments: argparse.Namespace) -> dict[str, str]:
    """The process's environment with the command's flags over it: a flag wins."""
    env = dict(os.environ)
    for flag, key in (
        ("config", "PODBUS_CONFIG"),
        ("config_dir", "PODBUS_CONFIG_DIR"),
        ("data", "PODBUS_DATA"),
        ("manifests", "PODBUS_MANIFESTS"),
        ("port", "PODBUS_PORT"),
        ("workers", "PODBUS_WORKERS"),
        ("hostname_override", "PODBUS_NODE_NAME"),
        ("kubeconfig", "PODBUS_KUBECONFIG"),
        ("node_ip", "PODBUS_NODE_IP"),
        ("node_labels", "PODBUS_NODE_LABELS"),
    ):
        value = getattr(arguments, flag, None)
        if value is not None:
            env[key] = str(Path(value).absolute()) if flag in _PATHS else str(value)
    return env


def config_flags(arguments: argparse.Namespace) -> dict[str, str]:
    """Fields of the KubeletConfiguration that the command gives: flag without dashes -> what it says."""
    given = {name: getattr(arguments, name.replace("-", "_"), None) for name in CONFIG_FLAGS}
    return {name: str(value) for name, value in given.items() if value is not None}


def up(arguments: argparse.Namespace) -> int:
    """The command. 0 = it's up, or was up and has been asked to end; 1 = it can't start; 78 = wrong settings."""
    env = environment(arguments)
    try:
        settings = load_settings(env, config_flags(arguments))
    except SettingsError as error:
        docker = env.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
        image = env.get("PODBUS_SANDBOX_IMAGE") or DEFAULT_SANDBOX_IMAGE
        complain([*error.problems, *machine_faults(docker, image)])
        return EXIT_CONFIG
    return start(settings, load_builds, is_detached=arguments.detach)


def start(settings: Settings, builds: LoadBuilds, *, is_detached: bool, preflight: bool = True) -> int:
    """Bring the node up with these services. `builds` is called once, in the supervisor."""
    paths = settings.paths
    try:
        if (other := running(paths)) is not None:
            return _tell_running(paths, other, is_awaited=is_detached)
    except PermissionError:
        pass  # the preflight says that root is needed
    if preflight:
        faults = [*machine_faults(settings.docker_host, settings.sandbox_image), *node_faults(settings)]
        if faults:
            complain(faults)
            return EXIT_FAILED
    warnings = [*settings.config_warnings, *(node_warnings(settings) if preflight else ())]
    make_directories(paths)
    lock = supervisor_lock(paths)
    if not lock.try_acquire():  # another `podbus up` was a moment faster
        other = running(paths)
        return _tell_running(paths, other, is_awaited=is_detached) if other is not None else EXIT_FAILED
    write_running(paths, Running(os.getpid(), _api(settings), ready=False))
    log = paths.log / "supervisor.log"
    if is_detached:
        code = detach(lambda output: _supervise(settings, builds, lock, Console(log, output), None, warnings), log)
        if code:
            complain([f"podbus is not up; the logs are in {paths.log}"])
        return code
    console = Console(log, sys.stdout.fileno())
    return _supervise(settings, builds, lock, console, console.echo, warnings)


def load_builds() -> Mapping[ServiceName, Build]:
    """Import every service: once, in the parent, so that they share its memory. Raises ImportError."""
    builds = {name: importlib.import_module(f"services.{name}.app").build for name in SERVICES}
    for module in _LOADED_LATER:
        importlib.import_module(module)
    return builds


def _tell_running(paths: DataPaths, other: Running, *, is_awaited: bool) -> int:
    """A second start. Detached it promises a node that is ready, so it waits for the first one's start to end."""
    if is_awaited and not other.ready:
        print(f"podbus is starting: pid {other.pid}; waiting for it", flush=True)
        now = _started(paths)
        if now is None or not now.ready:
            complain([f"podbus is not up: pid {other.pid} {'has ended' if now is None else 'is not ready yet'}"])
            return EXIT_FAILED
        other = now
    state = "up" if other.ready else "starting"
    where = f", API {other.api}" if other.api else ""
    print(f"podbus is {state}: pid {other.pid}{where}")
    return 0


def _started(paths: DataPaths) -> Running | None:
    """What runs when the start that is under way has ended, or its time has."""
    deadline = time.monotonic() + START_SECONDS + _SET_UP_SECONDS
    while (now := running(paths)) is not None and not now.ready and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return now


def _api(settings: Settings) -> str:
    address = settings.config.address
    return f"https://{f'[{address}]' if ':' in address else address}:{settings.port}"


def _supervise(
    settings: Settings,
    builds: LoadBuilds,
    lock: FileLock,
    console: Console,
    echo: Callable[[bytes], None] | None,
    warnings: Sequence[str],
) -> int:
    paths = settings.paths
    facts = Running(os.getpid(), _api(settings), ready=False)
    write_running(paths, facts)
    try:
        for warning in warnings:
            console.say(f"warning: {warning}")
        # In a short process of its own: Alembic and cryptography would cost every service 60 MiB.
        set_up = _Child(lambda: set_up_node(settings))
        try:
            services = builds()
        except Exception:  # noqa: BLE001 - the boundary: whatever a service's import raises is told
            console.say(traceback.format_exc().rstrip())
            console.say("a service can't be loaded")
            return EXIT_FAILED
        finally:
            set_up_code, said = set_up.wait()
        if set_up_code != 0:
            for line in said:
                console.say(line)
            console.say("the set-up has failed")
            return EXIT_FAILED
        return _run(settings, services, lock, console, echo, facts)
    finally:
        forget_running(paths)
        console.close()
        lock.release()


def _run(
    settings: Settings,
    services: Mapping[ServiceName, Build],
    lock: FileLock,
    console: Console,
    echo: Callable[[bytes], None] | None,
    facts: Running,
) -> int:
    from cli.node_processes import node_programs

    paths = settings.paths
    bus, server = load_bus_server(paths), find_server()
    if bus is None or server is None:
        console.say("nats-server or its configuration is missing")
        return EXIT_FAILED

    def all_ready() -> None:
        write_running(paths, Running(facts.pid, facts.api, ready=True))
        console.say(f"podbus is up: pid {facts.pid}, API {facts.api}")
        notify(f"READY=1\nSTATUS=API {facts.api}")
        if echo is None:
            console.echo(f"{READY_LINE}\n".encode())
            console.let_go()

    def stopping() -> None:
        notify("STOPPING=1")
        console.say("ending; the pods keep running")

    def let_go() -> None:
        lock.release()
        console.let_go()
        console.close()

    limit_arenas()
    gc.collect()
    gc.freeze()
    supervisor = Supervisor(
        node_programs(settings, services, server=server, bus=bus),
        logs=paths.log,
        say=console.say,
        echo=echo,
        all_ready=all_ready,
        stopping=stopping,
        in_child=let_go,
        chore=lambda: renew_keys(settings),
    )
    code = supervisor.run()
    console.say("podbus has ended" if code == 0 else f"podbus has ended with exit code {code}")
    return code


def set_up_node(settings: Settings) -> int:
    """First start and migrations; 0, or 1 with the reason on standard error."""
    from cli.db import db_upgrade
    from shared.storage.migrate import DatabaseUnusable

    server = find_server()
    try:
        first_start(
            settings,
            bus_version=server_version(server) if server else None,
            move_bus=_is_bus_port_taken(settings.paths),
        )
        db_upgrade(settings.data)
    except (OSError, ValueError, DatabaseUnusable) as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_FAILED
    return 0


def renew_keys(settings: Settings) -> int:
    """Once a day, so that a node that stays up has no certificate that ends: api reads new ones by itself."""
    from cli.first_start import ensure_keys

    try:
        ensure_keys(settings)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"podbus: keys not renewed: {error}\n")
        return EXIT_FAILED
    return 0


def _is_bus_port_taken(paths: DataPaths) -> bool:
    known = load_bus_server(paths)
    if known is None:
        return False
    deadline = time.monotonic() + _BUS_PORT_SECONDS
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((known.host, known.port))
                return False
            except OSError:
                if time.monotonic() > deadline:
                    return True
        time.sleep(0.1)


class _Child:
    """A short process beside us: its exit code and what it wrote."""

    def __init__(self, body: Callable[[], int]) -> None:
        self._read, write = os.pipe2(os.O_CLOEXEC)
        self._pid = fork(body, output=write, close=[self._read])
        os.close(write)

    def wait(self) -> tuple[int, list[str]]:
        with os.fdopen(self._read, errors="replace") as output:
            said = output.read().splitlines()
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status), said
