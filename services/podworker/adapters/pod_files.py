"""A pod's files on the node: its directory, /etc/hosts, termination message files and the links to its logs.

All paths come from the configurations (services.podworker.core.node_facts); this makes, reads and removes
them. Calls block: they run in the threads of the engine's calls.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Set
from pathlib import Path

from services.podworker.adapters.docker_translate import container_log_link
from services.podworker.adapters.host_files import HostFiles
from services.podworker.adapters.mounting import mounts_below, unmount_below
from services.podworker.core.container_config import ContainerConfig, SandboxConfig
from services.podworker.core.dns import resolv_conf
from services.podworker.core.hosts_file import host_network_hosts_file, hosts_file
from services.podworker.core.node_facts import DNSConfig
from shared.kube import names

_log = logging.getLogger("podbus.podworker.pod_files")

MAX_TERMINATION_MESSAGE = 4096
"""Bytes read from the end of the file (kubelet: MaxContainerTerminationMessageLength)."""
MAX_SECRET = 1024 * 1024
"""Bytes: no value of a Secret is longer."""
_UNWRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS}


class PodFiles:
    """`data_dir`/pods/<uid> and the log directories of one instance.

    `container_logs` is the flat directory of links (/var/log/containers). Where the log directories can't be
    written the links are left out, and that is told once: logs are readable without them. `host`: the engine's files.
    """

    def __init__(self, data_dir: Path, log_root: Path, container_logs: Path, host: HostFiles | None = None) -> None:
        self._pods = data_dir / "pods"
        self._log_root = log_root
        self._container_logs = container_logs
        self._host = host or HostFiles()
        self._told = False

    def prepare_sandbox(self, config: SandboxConfig) -> None:
        """The pod's own directory (0750) and its log directory (0755). Raises OSError for the first only."""
        self._pods.mkdir(mode=0o750, parents=True, exist_ok=True)
        (self._pods / config.uid).mkdir(mode=0o750, exist_ok=True)
        self._optional(lambda: Path(config.log_directory).mkdir(mode=0o755, parents=True, exist_ok=True))

    def prepare_container(self, config: ContainerConfig, ips: tuple[str, ...]) -> None:
        """/etc/hosts as it is now, and a fresh termination message file. Raises OSError."""
        (self._pods / config.uid).mkdir(mode=0o750, parents=True, exist_ok=True)
        if config.hosts.is_the_nodes:
            text = host_network_hosts_file(self._host.read_text("/etc/hosts"), config.hosts)
        else:
            text = hosts_file(ips, config.hosts)
        # Written in place: a running container of the pod sees this very file by a bind mount.
        _write(Path(config.hosts_file), text.encode(), 0o644)
        message = Path(config.termination_log)
        message.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        _write(message, b"", 0o666)

    def write_resolv_conf(self, path: str, dns: DNSConfig) -> None:
        """In place: the engine has bound this file of the sandbox into it, and will into all containers of the pod.
        Raises OSError."""
        self._host.overwrite(path, resolv_conf(dns).encode())

    def read_seccomp(self, path: str) -> str:
        """A profile as the engine wants it. Raises OSError with the kubelet's words."""
        try:
            return json.dumps(json.loads(Path(path).read_bytes()), separators=(",", ":"))
        except OSError as error:
            raise OSError(f'cannot load seccomp profile "{path}": {error.strerror}') from error
        except ValueError as error:
            raise OSError(f'cannot load seccomp profile "{path}": {error}') from error

    def link_log(self, labels: Mapping[str, str], container_id: str, engine_log: str) -> None:
        """/var/log/containers/... -> /var/log/pods/.../<n>.log -> the engine's file. Also for a failed
        start."""
        log_path = labels.get(names.LABEL_LOG_PATH, "")
        if not engine_log or not log_path:
            return
        link, flat = Path(log_path), self._container_logs / container_log_link(labels, container_id)

        def make() -> None:
            link.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            _link(link, engine_log)
            flat.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            _link(flat, log_path)

        self._optional(make)

    def unlink_log(self, labels: Mapping[str, str], container_id: str) -> None:
        """The links of a removed container."""
        log_path = labels.get(names.LABEL_LOG_PATH, "")

        def drop() -> None:
            (self._container_logs / container_log_link(labels, container_id)).unlink(missing_ok=True)
            # The path comes from a label: only a link below the log directory is ours.
            if log_path and Path(log_path).is_symlink() and self._log_root in Path(log_path).parents:
                Path(log_path).unlink(missing_ok=True)

        self._optional(drop)

    def secret_values(self, uid: str) -> list[str]:
        """What the files of the pod's Secret volumes hold."""
        if not _is_directory_name(uid):
            return []
        volumes = self._pods / uid / "volumes" / "kubernetes.io~secret"
        values = []
        for directory, _, files in os.walk(volumes):
            for name in files:
                path = Path(directory, name)
                with contextlib.suppress(OSError):
                    if not path.is_symlink() and path.stat().st_size <= MAX_SECRET:
                        values.append(path.read_text(encoding="utf-8", errors="replace"))
        return values

    def remove_pod(self, uid: str) -> None:
        """The pod's log directories, then its directory. A directory with something mounted in it stays."""
        if not _is_directory_name(uid):
            return
        # The directory tells of the rest, should this be interrupted: it goes last.
        self._optional(lambda: self._remove_log_directories(uid))
        directory = self._pods / uid
        self._unmount(directory)
        if mounted := mounts_below(directory):
            _log.warning("pod_dir=%s stays: still mounted: %s", directory, " ".join(mounted))
        else:
            shutil.rmtree(directory, ignore_errors=True)

    def _unmount(self, directory: Path) -> None:
        """Volumes in memory, and what was bound by sub path: nothing behind those may be removed."""
        try:
            unmount_below(directory)
        except OSError as error:
            _log.warning("pod_dir=%s: not unmounted: %s", directory, error)

    def drop_dangling_links(self, uids: Set[str]) -> int:
        """Links of these pods whose container the engine has no more; how many there were. Raises nothing."""
        dropped = 0

        def drop() -> None:
            nonlocal dropped
            if not self._log_root.is_dir():
                return
            for directory in list(self._log_root.iterdir()):
                if directory.name.rpartition("_")[2] in uids:
                    dropped += sum(_drop_if_dangling(link) for link in list(directory.glob("*/*.log")))
            if dropped and self._container_logs.is_dir():
                for link in list(self._container_logs.iterdir()):
                    target = str(link.readlink()) if link.is_symlink() else ""
                    if target and any(f"_{uid}/" in target for uid in uids) and not os.path.lexists(target):
                        link.unlink(missing_ok=True)

        self._optional(drop)
        return dropped

    def _remove_log_directories(self, uid: str) -> None:
        if not self._log_root.is_dir():
            return
        for entry in list(os.scandir(self._log_root)):
            if entry.name.endswith(f"_{uid}") and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
        if self._container_logs.is_dir():
            for link in list(self._container_logs.iterdir()):
                if link.is_symlink() and f"_{uid}/" in str(link.readlink()):
                    link.unlink(missing_ok=True)

    def _optional(self, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError as error:
            if error.errno not in _UNWRITABLE or not self._told:
                _log.warning("log links can't be kept: %s", error)
            self._told = self._told or error.errno in _UNWRITABLE


def _is_directory_name(uid: str) -> bool:
    return uid not in ("", ".", "..") and "/" not in uid


def read_termination_message(path: str) -> str:
    """The last 4096 bytes of the file; "" when it is empty, gone, or no plain file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        size = os.fstat(handle).st_size
        text = os.pread(handle, MAX_TERMINATION_MESSAGE, max(0, size - MAX_TERMINATION_MESSAGE))
    except OSError:
        return ""
    finally:
        os.close(handle)
    return text.decode(errors="replace")


def _drop_if_dangling(link: Path) -> bool:
    """A link whose container's directory is gone from the engine's; where those can't be seen it stays."""
    if not link.is_symlink():
        return False
    container = Path(link.readlink()).parent
    if container.exists() or not container.parent.is_dir():
        return False
    link.unlink(missing_ok=True)
    return True


def _write(path: Path, content: bytes, mode: int) -> None:
    """Truncate and write, never by rename, with exactly that mode whatever the umask. The same content
    stays."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == content and path.stat().st_mode & 0o777 == mode:
            return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, mode)
        file.write(content)


def _link(link: Path, target: str) -> None:
    """Replace in one step, so that a reader never finds nothing."""
    if link.is_symlink() and str(link.readlink()) == target:
        return
    fresh = link.with_name(f".{link.name[:200]}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
