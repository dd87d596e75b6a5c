"""Where things lie below the data directory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

_SOCKET_PATH_BYTES = 100
"""sockaddr_un holds 107; the rest is for `/stats-0.sock`."""


@dataclass(frozen=True)
class DataPaths:
    """The layout of one instance's data directory. Nothing here touches the disk."""

    data: Path

    @property
    def run(self) -> Path:
        """Sockets, locks, credentials of the bus: cleared at a reboot without loss. 0700."""
        run = self.data / "run"
        if len(str(run)) + len("/worker-63.sock") <= _SOCKET_PATH_BYTES:
            return run
        return Path("/run") / f"podbus-{hashlib.sha256(str(self.data).encode()).hexdigest()[:12]}"

    @property
    def pki(self) -> Path:
        return self.data / "pki"

    @property
    def log(self) -> Path:
        return self.data / "log"

    @property
    def pods(self) -> Path:
        """Laid out as the kubelet's root directory: <uid>/volumes, <uid>/etc-hosts, ..."""
        return self.data / "pods"

    @property
    def nats(self) -> Path:
        return self.data / "nats"

    @property
    def node_file(self) -> Path:
        """The node's name, fixed at first start."""
        return self.data / "node"

    @property
    def instance_file(self) -> Path:
        """This instance's id: the value of the label podbus.instance."""
        return self.data / "instance"

    @property
    def owners_lock(self) -> Path:
        return self.run / "owners.lock"

    @property
    def admin_kubeconfig(self) -> Path:
        return self.pki / "admin.kubeconfig"

    @property
    def supervisor_pid(self) -> Path:
        return self.run / "supervisor.pid"

    def database(self, name: str) -> Path:
        """`pods`, `status` or `source`."""
        return self.data / f"{name}.db"

    def bus_credentials(self, service: str) -> Path:
        return self.run / "bus" / f"{service}.json"

    def health(self, process: str) -> Path:
        """Its age tells whether the process's loop turns: `<run>/health/podworker-0.json`."""
        return self.run / "health" / f"{process}.json"

    def worker_socket(self, worker: int) -> Path:
        return self.run / f"worker-{worker}.sock"
