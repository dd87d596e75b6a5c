"""A node of a test's own as containers: compose.yaml on a temporary data directory."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support.eventually import eventually
from tests.support.node import ROOT, Node

COMMAND = shlex.split(
    os.environ.get("PODBUS_TEST_COMPOSE") or ("docker-compose" if shutil.which("docker-compose") else "docker compose")
)
"""PODBUS_TEST_COMPOSE, else Debian's, else the plugin."""


class ComposeNode(Node):
    """Seen and fed as any node; `start` also brings back what `down` has ended."""

    def __init__(self, directory: Path, *, project: str) -> None:
        super().__init__(directory, name=project)
        self.project = project
        self._logs = directory / "logs"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "COMPOSE_PROJECT_NAME": self.project,
            "PODBUS_CONFIG": str(self.data / "config.yaml"),
            "PODBUS_DATA": str(self.data),
            "PODBUS_MANIFESTS": str(self.manifests),
            "PODBUS_NODE_NAME": self.name,
            "PODBUS_POD_LOGS": str(self._logs),
            "PODBUS_PORT": str(self.port),
        }

    def compose(self, *arguments: str) -> str:
        """Standard output; raises AssertionError with all that it said."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=180,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *, within: float = 60) -> None:
        self.data.mkdir(exist_ok=True)
        (self.data / "config.yaml").write_text(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
            f"address: 127.0.0.1\nhealthzPort: {self.healthz_port}\n"
        )
        self.compose("up", "-d")
        eventually(lambda: self.get("/healthz")[0] == 200, within=within, every=0.2)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """`docker-compose down`: the services' containers go, the pods stay."""
        assert how == signal.SIGTERM
        self.compose("down", "--timeout", "20")
        return 0

    def end_pods(self) -> str:
        """`podbus down --pods` on the host."""
        command = [sys.executable, "-m", "cli.main", "down", "--pods", "--data", str(self.data)]
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout

    def close(self) -> None:
        """Services, pods and the shared mount go, each whatever has failed before."""
        with ExitStack() as last_first:
            last_first.callback(self._unmount)
            last_first.callback(super().close)
            last_first.callback(self.stop)

    def _unmount(self) -> None:
        while any(line.split()[1] == str(self.data) for line in Path("/proc/self/mounts").read_text().splitlines()):
            subprocess.run(["umount", str(self.data)], check=True, timeout=20)

    def services(self) -> dict[str, dict[str, Any]]:
        """`docker inspect` of every container of the project, by its name without the project's."""
        ids = self.docker("ps", "-aq", "--filter", f"label=com.docker.compose.project={self.project}").split()
        inspected = json.loads(self.docker("inspect", *ids)) if ids else []
        return {one["Name"].lstrip("/").removeprefix(self.project)[1:]: one for one in inspected}

    def unhealthy(self) -> list[str]:
        """ "NAME is STATE" for what doesn't run or whose health check doesn't say healthy; the ended set-up is fine."""
        found = []
        for name, one in self.services().items():
            state = one["State"]
            if name.startswith("setup"):
                shown, fine = f"ended {state['ExitCode']}", state["Status"] == "exited" and state["ExitCode"] == 0
            else:
                shown = state["Health"]["Status"] if state["Running"] else state["Status"]
                fine = shown == "healthy"
            if not fine:
                found.append(f"{name} is {shown}")
        return found
