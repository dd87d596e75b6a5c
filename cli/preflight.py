"""Everything that `podbus up` needs of the machine, looked at before anything is changed: every fault at once."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from cli.engine import API_NEEDED, Engine, EngineError
from cli.nats_config import find_server
from shared.kube.allocatable import reservation_faults
from shared.runtime.machine import look_at_machine
from shared.runtime.settings import DEFAULT_SANDBOX_IMAGE, Settings

_NETWORK_NAMES = """
nfs nfs4 cifs smb3 smbfs ceph fuse.ceph fuse.sshfs fuse.glusterfs glusterfs afs lustre gfs2 ocfs2 beegfs
"""
_NETWORK_FILESYSTEMS = frozenset(_NETWORK_NAMES.split())


def machine_faults(docker_host: str, sandbox_image: str) -> list[str]:
    """What doesn't depend on the node's settings."""
    return [
        *_system(),
        *_engine(docker_host, sandbox_image),
        *_nats_server(),
        *_cgroups(Path("/proc/self/mountinfo").read_text() if sys.platform == "linux" else ""),
    ]


def node_faults(settings: Settings) -> list[str]:
    """What does: ports, the data directory, the cgroup driver."""
    return [
        *_cgroup_driver(settings),
        *_network(settings),
        *_reservations(settings),
        *_port(settings.config.address, settings.port, "the API (--port, PODBUS_PORT)"),
        *data_faults(settings.data, Path("/proc/self/mountinfo").read_text()),
        *_files(settings),
    ]


def node_warnings(settings: Settings) -> list[str]:
    """What the node can do without. kubelet: a taken healthz port is told, and doesn't stop it."""
    config = settings.config
    return list(_port(config.healthz_bind_address, config.healthz_port, "/healthz (healthzPort)"))


def _system() -> Iterator[str]:
    if sys.platform != "linux":
        yield f"system: podbus runs pods on Linux; this is {sys.platform}"
    elif os.geteuid() != 0:
        yield "root: podbus must run as root (it mounts volumes and reads other users' processes); use sudo"


def _engine(address: str, sandbox_image: str) -> Iterator[str]:
    engine = Engine(address)
    try:
        version = engine.api_version()
        if version < API_NEEDED:
            yield (
                f"Docker Engine: API {version[0]}.{version[1]} is too old, "
                f"{API_NEEDED[0]}.{API_NEEDED[1]} (Docker 20.10) or newer is needed"
            )
        elif not engine.has_image(sandbox_image):
            remedy = (
                "`make setup` (or deploy/images/build.sh sandbox) builds it"
                if sandbox_image == DEFAULT_SANDBOX_IMAGE
                else f"`docker pull {sandbox_image}`"
            )
            yield f"sandbox image: {sandbox_image} is not on the engine; {remedy}"
    except EngineError as error:
        remedy = "start it (systemctl start docker), or name its socket in DOCKER_HOST"
        if isinstance(error.__cause__, PermissionError):
            remedy = "use sudo"
        yield f"Docker Engine: {error}; {remedy}"


def _nats_server() -> Iterator[str]:
    if find_server() is None:
        yield "nats-server: not found; install it (apt-get install nats-server), 2.9 or newer, on PATH"


def _cgroups(mountinfo: str) -> Iterator[str]:
    if sys.platform != "linux" or Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return
    mounted = set()
    for line in mountinfo.splitlines():
        _, _, tail = line.partition(" - ")
        kind, _, rest = tail.partition(" ")
        if kind == "cgroup":
            mounted.update(rest.rpartition(" ")[2].split(","))
    if missing := sorted({"cpu", "cpuacct", "memory"} - mounted):
        yield f"cgroups: controllers are not mounted: {', '.join(missing)} (apt-get install cgroupfs-mount)"


def _cgroup_driver(settings: Settings) -> Iterator[str]:
    wanted = settings.config.cgroup_driver
    if not wanted:
        return
    try:
        found = str(Engine(settings.docker_host).call("GET", "/info").get("CgroupDriver", ""))
    except EngineError:
        return  # told already
    if found != wanted:
        yield (
            f"cgroupDriver: the configuration says {wanted!r}, the engine uses {found!r}: "
            "make them equal, or leave cgroupDriver out"
        )


def _network(settings: Settings) -> Iterator[str]:
    name = settings.network
    if not name:
        return
    try:
        Engine(settings.docker_host).call("GET", f"/networks/{quote(name, safe='')}")
    except EngineError as error:
        if error.status == 404:
            yield f"PODBUS_NETWORK: the engine has no network {name!r}; `docker network create {name}` makes it"


def _reservations(settings: Settings) -> list[str]:
    config, machine = settings.config, look_at_machine("127.0.0.1")
    capacity = {"cpu": machine.cores * 1000, "memory": machine.memory_bytes}
    reserved = {"systemReserved": config.system_reserved, "kubeReserved": config.kube_reserved}
    return reservation_faults(capacity, config.eviction_hard, reserved)


def _port(address: str, port: int, what: str) -> Iterator[str]:
    if port == 0:
        return
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            yield f"port {port} on {address}, for {what}: {(error.strerror or str(error)).lower()}"


def data_faults(data: Path, mountinfo: str) -> Iterator[str]:
    """The data directory holds kernel locks, SQLite files and sockets: a local, writable filesystem."""
    existing = next(path for path in (data, *data.parents) if path.exists())
    if not existing.is_dir():
        yield f"data directory: {existing} is not a directory"
        return
    if not os.access(existing, os.W_OK | os.X_OK) or os.statvfs(existing).f_flag & os.ST_RDONLY:
        yield f"data directory: {existing} is not writable; choose another by --data"
    kind = filesystem_of(existing.resolve(), mountinfo)
    if kind in _NETWORK_FILESYSTEMS:
        yield f"data directory: {existing} is on {kind}, a network filesystem; choose a local one by --data"


def filesystem_of(path: Path, mountinfo: str) -> str:
    """The type of the filesystem that the path is on, by the text of /proc/self/mountinfo; "" = unknown."""
    found, longest = "", -1
    for line in mountinfo.splitlines():
        head, dash, tail = line.partition(" - ")
        fields = head.split()
        if not dash or len(fields) < 5:
            continue
        point = Path(fields[4].encode().decode("unicode_escape"))
        # the last of several mounts on one point is the visible one
        if (path == point or point in path.parents) and len(point.parts) >= longest:
            found, longest = tail.split()[0], len(point.parts)
    return found


def _files(settings: Settings) -> Iterator[str]:
    config = settings.config
    for key, text in (
        ("tlsCertFile", config.tls_cert_file),
        ("tlsPrivateKeyFile", config.tls_private_key_file),
        ("authentication.x509.clientCAFile", config.client_ca_file),
    ):
        if text and not os.access(text, os.R_OK):
            yield f"{key}: {text} can't be read"
    if bool(config.tls_cert_file) != bool(config.tls_private_key_file):
        yield "tlsCertFile, tlsPrivateKeyFile: give both or neither"
