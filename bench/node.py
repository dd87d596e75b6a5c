"""The node that is measured: `podbus up` on a scratch directory, with the defaults a person gets."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from bench.engine import APP_COMMAND, APP_IMAGE, RawEngine
from bench.http_load import Endpoint, KeepAlive
from shared.runtime.paths import DataPaths

ROOT = Path(__file__).resolve().parents[1]
NAME = "bench"
_UP_SECONDS = 60.0
_STOP_SECONDS = 40.0


class BenchFailed(Exception):
    """The node doesn't do what is to be measured; the text says what."""


class BenchNode:
    """A context manager: up at its begin; at its end the agent and every container of this instance are gone."""

    def __init__(self, engine: RawEngine) -> None:
        self._engine = engine
        self._directory = Path(tempfile.mkdtemp(prefix="pbb-"))
        self.data = self._directory / "d"
        self.manifests = self._directory / "manifests"
        self.port = _free_port()
        self.healthz_port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: KeepAlive | None = None

    def __enter__(self) -> BenchNode:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if (instance := self.data / "instance").exists():
            self._engine.remove_instance(instance.read_text().strip())
        shutil.rmtree(self._directory, ignore_errors=True)

    # -- the agent --------------------------------------------------------------------------------------------

    def start(self) -> float:
        """Seconds until it says that it's up."""
        self.manifests.mkdir(parents=True, exist_ok=True)
        config = self._directory / "config.yaml"
        config.write_text(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
            f"address: 127.0.0.1\nhealthzPort: {self.healthz_port}\ncontainerLogMaxSize: 2Gi\n"
        )
        command = [
            *(sys.executable, "-m", "cli.main", "up", "--data", str(self.data), "--manifests", str(self.manifests)),
            *("--port", str(self.port), "--workers", "1", "--config", str(config)),
        ]
        environment = {
            **os.environ,
            "PODBUS_NODE_NAME": NAME,
            "PODBUS_POD_LOGS": str(self._directory / "logs" / "pods"),
        }
        began = time.monotonic()
        with (self._directory / "up.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        while f"podbus is up: pid {self._process.pid}," not in self._log():
            if self._process.poll() is not None or time.monotonic() - began > _UP_SECONDS:
                raise BenchFailed(f"podbus up doesn't come up:\n{self._log()[-3000:]}")
            time.sleep(0.05)
        return time.monotonic() - began

    def stop(self) -> None:
        """End the agent; its pods run on."""
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(_STOP_SECONDS)
            self._process = None

    @property
    def pid(self) -> int:
        """Of the supervisor."""
        assert self._process is not None
        return self._process.pid

    @property
    def instance(self) -> str:
        return (self.data / "instance").read_text().strip()

    def _log(self) -> str:
        return (self._directory / "up.log").read_text(errors="replace")

    # -- its API ----------------------------------------------------------------------------------------------

    @property
    def endpoint(self) -> Endpoint:
        """TLS, with the admin's token."""
        pki = DataPaths(self.data).pki
        with (pki / "tokens.csv").open() as rows:
            token = next(csv.reader(rows))[0]
        return Endpoint(("127.0.0.1", self.port), str(pki / "ca.crt"), token)

    def listed(self) -> bytes:
        """The body of /pods, over one connection that stays."""
        if self._link is None:
            self._link = self.endpoint.connect()
        status, body = self._link.get("/pods")
        if status != 200:
            raise BenchFailed(f"GET /pods: {status} {body[:200]!r}")
        return body

    def running(self) -> int:
        """How many pods are Running. The text is enough: no label or name says that."""
        return self.listed().count(b'"phase":"Running"')

    # -- its pods ---------------------------------------------------------------------------------------------

    def drop(
        self, names: Iterable[str], *, grace: int = 5, command: list[str] | None = None, probe: object = None
    ) -> None:
        """Put manifests in, each as a careful person would: written elsewhere, then renamed."""
        ready = []
        for name in names:
            scratch = self.manifests / f".{name}.new"
            scratch.write_text(_manifest(name, grace, command or APP_COMMAND, probe))
            ready.append((scratch, self.manifests / f"{name}.yaml"))
        for scratch, path in ready:
            scratch.rename(path)

    def withdraw(self, names: Iterable[str]) -> None:
        for name in names:
            (self.manifests / f"{name}.yaml").unlink()

    def wait_running(self, count: int, *, every: float, within: float = 120) -> tuple[float, float]:
        """Seconds until the first new pod runs, and until `count` pods do."""
        began, before, first = time.monotonic(), self.running(), 0.0
        while (now := self.running()) < count:
            took = time.monotonic() - began
            if now > before and not first:
                first = took
            if took > within:
                raise BenchFailed(f"{now} of {count} pods Running after {within:.0f} s:\n{self._log()[-3000:]}")
            time.sleep(every)
        took = time.monotonic() - began
        return first or took, took

    def wait_gone(self, name: str, *, every: float = 0.005, within: float = 60) -> float:
        """Seconds until the pod isn't in /pods any more."""
        began, mark = time.monotonic(), f'"name":"{name}-{NAME}"'.encode()
        while mark in self.listed():
            if time.monotonic() - began > within:
                raise BenchFailed(f"{name} is still in /pods after {within:.0f} s")
            time.sleep(every)
        return time.monotonic() - began

    def empty(self, names: Iterable[str], within: float = 120) -> None:
        """Remove pods and wait until /pods has none at all."""
        self.withdraw(names)
        began = time.monotonic()
        while re.search(rb'"phase":', self.listed()):
            if time.monotonic() - began > within:
                raise BenchFailed(f"pods are still in /pods after {within:.0f} s")
            time.sleep(0.05)


def _manifest(name: str, grace: int, command: list[str], readiness_probe: object) -> str:
    probe = f"    readinessProbe: {json.dumps(readiness_probe)}\n" if readiness_probe else ""
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  terminationGracePeriodSeconds: {grace}\n"
        f"  containers:\n  - name: main\n    image: {APP_IMAGE}\n    command: {json.dumps(command)}\n{probe}"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
