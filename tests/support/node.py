"""A whole node of a test's own: `podbus up` on a temporary data directory, real nats-server, real engine."""

from __future__ import annotations

import csv
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from services.podworker.adapters.mounting import unmount_below
from tests.support.eventually import eventually
from tests.support.nats_server import free_port

ROOT = Path(__file__).resolve().parents[2]


class Node:
    """Made with `start`; `close` ends the agent and removes every container of this instance."""

    def __init__(
        self,
        directory: Path,
        *,
        workers: int = 1,
        name: str = "n1",
        docker_host: str = "",
        config: str = "",
    ) -> None:
        self.data = directory / "d"
        self.manifests = directory / "manifests"
        self.manifests.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.healthz_port = free_port()
        self.workers = workers
        self.name = name
        self.docker_host = docker_host
        self._config = config
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    # -- the agent --------------------------------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        extra = {"DOCKER_HOST": self.docker_host} if self.docker_host else {}
        return {
            **os.environ,
            **extra,
            "PODBUS_NODE_NAME": self.name,
            "PODBUS_POD_LOGS": str(self._directory / "logs" / "pods"),
            "PODBUS_LOG_LEVEL": "DEBUG",
        }

    @property
    def flags(self) -> list[str]:
        """Further ones of `podbus up`."""
        return []

    def start(self, *, within: float = 60) -> None:
        """Start `podbus up`, wait until the API answers and says that the node is ready."""
        config = self._directory / "config.yaml"
        config.write_text(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
            f"address: 127.0.0.1\nhealthzPort: {self.healthz_port}\n{self._config}"
        )
        command = [
            *(sys.executable, "-m", "cli.main", "up", "--data", str(self.data), "--manifests", str(self.manifests)),
            *("--port", str(self.port), "--workers", str(self.workers), "--config", str(config), *self.flags),
        ]
        with (self._directory / "up.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        eventually(self._is_up, within=within, every=0.1)

    def reconfigure(self, config: str) -> None:
        """From the next start on."""
        self._config = config

    def _is_up(self) -> bool:
        assert self._process is not None
        code = self._process.poll()
        if code is not None:
            raise RuntimeError(f"podbus up ended with {code}:\n{self.log()[-4000:]}")
        status, _ = self.get("/healthz")
        return status == 200

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End the agent (its pods run on); the exit code."""
        assert self._process is not None
        self._process.send_signal(how)
        code = self._process.wait(40)
        self._process = None
        return code

    def log(self) -> str:
        """What `up` and all its services said."""
        return (self._directory / "up.log").read_text(errors="replace")

    def pids(self, service: str) -> list[int]:
        """Of the processes of a service, by their health files; of nats-server by its command line."""
        if service == "nats-server":
            return [pid for pid, line in _commands() if "nats-server" in line and str(self.data) in line]
        found = []
        for path in sorted((self.data / "run" / "health").glob(f"{service}*.json")):
            pid = json.loads(path.read_text())["pid"]
            if Path(f"/proc/{pid}").exists():
                found.append(int(pid))
        return found

    def agent_pids(self) -> list[int]:
        """Of everything that works on this data directory."""
        return [pid for pid, line in _commands() if str(self.data) in line and "pytest" not in line]

    def close(self) -> None:
        if self._process is not None:
            self.stop()
        left = self.docker("ps", "-aq", "--filter", f"label=podbus.instance={self.instance}").split()
        if left:
            self.docker("rm", "-fv", *left)
        unmount_below(self.data / "pods")

    # -- what it shows ----------------------------------------------------------------------------------------

    @property
    def instance(self) -> str:
        path = self.data / "instance"
        return path.read_text().strip() if path.exists() else "none"

    @property
    def token(self) -> str:
        with (self.data / "pki" / "tokens.csv").open() as rows:
            return next(csv.reader(rows))[0]

    def get(self, path: str, *, token: str | None = None, method: str = "GET") -> tuple[int, bytes]:
        """(status, body); `token` "" = no credentials. Raises OSError while nobody listens."""
        context = ssl.create_default_context(cafile=str(self.data / "pki" / "ca.crt"))
        link = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=context)
        try:
            bearer = self.token if token is None else token
            link.request(method, path, headers={"Authorization": f"Bearer {bearer}"} if bearer else {})
            answer = link.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            link.close()

    def pods(self) -> dict[str, dict[str, Any]]:
        """GET /pods by short name (without the node's suffix)."""
        status, body = self.get("/pods")
        assert status == 200, (status, body)
        suffix = f"-{self.name}"
        return {p["metadata"]["name"].removesuffix(suffix): p for p in json.loads(body)["items"] or []}

    def pod(self, name: str) -> dict[str, Any]:
        return self.pods()[name]

    def json(self, path: str) -> Any:
        status, body = self.get(path)
        assert status == 200, (status, body)
        return json.loads(body)

    def ready_pods(self) -> set[str]:
        """Short names of the pods whose Ready condition is True."""
        return {name for name, pod in self.pods().items() if is_ready(pod)}

    def podbus(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command on this data directory; never raises for its exit code."""
        return subprocess.run(
            [sys.executable, "-m", "cli.main", *arguments, "--data", str(self.data)],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    # -- what it's given --------------------------------------------------------------------------------------

    def apply(self, name: str, text: str) -> None:
        """Write a manifest as a careful person would: elsewhere, then rename."""
        scratch = self.manifests / f".{name}.new"
        scratch.write_text(text)
        scratch.rename(self.manifests / name)

    def withdraw(self, name: str) -> None:
        (self.manifests / name).unlink()

    # -- the engine -------------------------------------------------------------------------------------------

    def docker(self, *arguments: str) -> str:
        """Standard output of the docker client; raises CalledProcessError."""
        environment = dict(os.environ)
        if self.docker_host:
            environment["DOCKER_HOST"] = self.docker_host
        return subprocess.run(
            ["docker", *arguments], env=environment, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    def containers(self, *, every: bool = False) -> dict[str, str]:
        """Name -> id of this instance's containers (running ones, or every one)."""
        form = "{{.Names}} {{.ID}}"
        options = ("-a",) if every else ()
        label = f"label=podbus.instance={self.instance}"
        lines = self.docker("ps", *options, "--no-trunc", "--filter", label, "--format", form).splitlines()
        return dict(line.split() for line in lines)


NodeMaker = Callable[..., Node]
"""The fixture `a_node`: makes a started node from Node's options."""


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
    return conditions.get("Ready") == "True"


def sleeper(name: str, *, command: str = "trap 'exit 0' TERM; sleep 3600 & wait", grace: int = 5, **extra: str) -> str:
    """A pod of one busybox container that ends at once on TERM."""
    lines = "".join(f"  {key}: {value}\n" for key, value in extra.items())
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n"
        f"spec:\n  terminationGracePeriodSeconds: {grace}\n{lines}"
        f"  containers:\n  - name: main\n    image: busybox:1.36\n    command: [sh, -c, {json.dumps(command)}]\n"
    )


def _commands() -> list[tuple[int, str]]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append((int(path.parent.name), path.read_bytes().replace(b"\0", b" ").decode(errors="replace")))
        except OSError:
            continue
    return found
