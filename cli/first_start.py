"""What must be there before the services start: directories, names, keys, the bus's users and configuration.

Idempotent: a second call changes nothing but what is missing, e.g. the run directory after a reboot.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from cli.nats_config import render
from cli.private_files import make_private_directory, write_private
from shared.contracts.acl import OPERATOR
from shared.contracts.subject import SERVICES
from shared.runtime.filelock import FileLock
from shared.runtime.paths import DataPaths
from shared.runtime.settings import Settings

_PORTS = range(20000, 30000)
_DATA_MODE = 0o750
"""As the kubelet's root directory."""


@dataclass(frozen=True)
class BusServer:
    """`<data>/nats/server.json`: chosen at the first start, then kept."""

    host: str
    port: int
    passwords: dict[str, str]

    @property
    def url(self) -> str:
        return f"nats://{self.host}:{self.port}"


def make_directories(paths: DataPaths) -> None:
    """Raises OSError."""
    if not paths.data.is_dir():
        paths.data.mkdir(parents=True)
        paths.data.chmod(_DATA_MODE)
    for path in (paths.run, paths.run / "bus", paths.run / "health", paths.pki, paths.nats):
        make_private_directory(path)
    for path in (paths.log, paths.pods):
        make_private_directory(path, _DATA_MODE)


def first_start(
    settings: Settings,
    *,
    bus_host: str = "127.0.0.1",
    bus_version: tuple[int, int, int] | None = None,
    move_bus: bool = False,
) -> BusServer:
    """Everything but the databases. `move_bus`: the bus's port is held by a stranger, take another. Raises OSError or
    ValueError with the file's path."""
    paths = settings.paths
    make_directories(paths)
    with FileLock(paths.data / ".setup.lock"):
        if not paths.node_file.exists():
            _write_readable(paths.node_file, settings.node_name)
        if not paths.instance_file.exists():
            _write_readable(paths.instance_file, secrets.token_hex(8))
        server = _bus_server(paths, bus_host, move_bus)
        text = render(
            host=server.host,
            port=server.port,
            node=settings.node_name,
            store=paths.nats / "store",
            passwords=server.passwords,
            version=bus_version,
        )
        write_private(paths.nats / "nats.conf", text)
        for user, password in server.passwords.items():
            document = {"url": server.url, "user": user, "password": password}
            write_private(paths.bus_credentials(user), json.dumps(document))
    ensure_keys(settings)
    return server


def load_bus_server(paths: DataPaths) -> BusServer | None:
    """None before the first start. Raises ValueError when the file is damaged."""
    path = paths.nats / "server.json"
    try:
        document = json.loads(path.read_bytes())
        return BusServer(document["host"], int(document["port"]), dict(document["passwords"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}): remove it to have a new one") from error


def node_addresses(settings: Settings) -> list[str]:
    """Where others reach the API: PODBUS_NODE_IP, else the address that the default route leaves from."""
    if settings.node_ip:
        return [settings.node_ip]
    found = []
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((target, 9))  # a datagram socket: no packet leaves
                found.append(str(probe.getsockname()[0]))
        except OSError:
            continue
    return found


def _bus_server(paths: DataPaths, host: str, move: bool) -> BusServer:
    known = load_bus_server(paths)
    users = (*SERVICES, OPERATOR)
    passwords = dict(known.passwords) if known else {}
    for user in users:
        passwords.setdefault(user, secrets.token_urlsafe(24))
    port = known.port if known is not None and not move else _free_port(host)
    server = BusServer(host, port, passwords)
    document = {"host": server.host, "port": server.port, "passwords": server.passwords}
    write_private(paths.nats / "server.json", json.dumps(document, indent=2) + "\n")
    return server


def _free_port(host: str) -> int:
    """Below the ports that the kernel gives to outgoing connections: one of those could hold it at the next start."""
    for _ in range(200):
        with socket.socket() as probe:
            try:
                probe.bind((host, secrets.choice(_PORTS)))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError(f"no free port for the bus from {_PORTS.start} to {_PORTS.stop - 1} on {host}")


def _write_readable(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(text + "\n")
    scratch.chmod(0o644)
    scratch.replace(path)


def ensure_keys(settings: Settings) -> None:
    """Certificates, tokens and the admin's kubeconfig. Raises OSError or ValueError."""
    from cli.pki import ensure_pki

    own = settings.config.tls_cert_file
    ensure_pki(
        settings.paths,
        settings.node_name,
        node_addresses(settings),
        port=settings.port,
        serving_certificate=Path(own) if own else None,
    )
