"""The real `api` process on a real nats-server, and a client that says exactly what it wants to say."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cli.pki import ensure_pki
from shared.runtime.paths import DataPaths
from tests.support.certificates import Pair
from tests.support.eventually import eventually
from tests.support.nats_server import NatsServer, free_port

_PROGRAM = """
import json, sys
from pathlib import Path
from services.api.app import build
from shared.runtime.config import KubeletConfig
from shared.runtime.service import run
from shared.runtime.settings import Settings
more = json.loads(sys.argv[4])
config = KubeletConfig(address="127.0.0.1", healthz_port=int(sys.argv[3]), **more)
kubeconfig = Path(sys.argv[5]) if sys.argv[5] else None
settings = Settings(
    data=Path(sys.argv[1]), node_name="n1", port=int(sys.argv[2]), config=config, kubeconfig=kubeconfig
)
sys.exit(run("api", build, settings=settings))
"""
TOKENS = {"admin": "podbus:admin", "view": "podbus:view", "metrics": "podbus:metrics", "nobody": "x"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes


class ApiProcess:
    """Start, ask, stop."""

    def __init__(
        self,
        data: Path,
        nats: NatsServer,
        *,
        client_ca: Path | None = None,
        kubeconfig: Path | None = None,
        **config: Any,
    ) -> None:
        """`config`: fields of KubeletConfig."""
        self.data = data
        self.paths = DataPaths(data)
        self.port = free_port()
        self.healthz_port = free_port()
        self._nats = nats
        self._config = {**config, **({"client_ca_file": str(client_ca)} if client_ca else {})}
        self._kubeconfig = kubeconfig
        self._process: subprocess.Popen[bytes] | None = None
        self.log_path = data / "api.log"

    def prepare(self) -> None:
        """Credentials of the bus, certificates, a token a role."""
        (self.paths.run / "bus").mkdir(parents=True, exist_ok=True)
        self.paths.bus_credentials("api").write_bytes(msgspec.json.encode(self._nats.credentials("api")))
        ensure_pki(self.paths, "n1", [])
        lines = [f'{user}-token,{user},{user}-uid,"{group}"' for user, group in TOKENS.items()]
        (self.paths.pki / "tokens.csv").write_text("\n".join(lines) + "\n")

    def spawn(self) -> None:
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    _PROGRAM,
                    str(self.data),
                    str(self.port),
                    str(self.healthz_port),
                    json.dumps(self._config),
                    str(self._kubeconfig or ""),
                ],
                stdout=log,
                stderr=log,
                cwd=Path(__file__).parents[3],
            )

    def start(self) -> None:
        self.prepare()
        self.spawn()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        try:
            eventually(self._is_ready, within=20)
        except BaseException:
            self.stop(signal.SIGKILL)
            raise

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()
        return "phase=ready" in self.log()

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stop(self, how: signal.Signals = signal.SIGTERM, within: float = 15) -> int:
        """The exit code."""
        if self._process is None:
            return 0
        self._process.send_signal(how)
        return self.wait(within)

    def wait(self, within: float = 20) -> int:
        """Until it ends; the exit code."""
        assert self._process is not None
        try:
            return self._process.wait(within)
        finally:
            self._process.kill()
            self._process.wait()
            self._process = None

    def client_context(self, pair: Pair | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.paths.pki / "ca.crt"))
        if pair is not None:
            context.load_cert_chain(pair.certificate, pair.key)
        return context

    def ask(
        self,
        path: str,
        *,
        user: str | None = "admin",
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: str | None = None,
        pair: Pair | None = None,
    ) -> Answer:
        """One request on a connection of its own; `user` names whose token is shown."""
        link = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=self.client_context(pair))
        sent = dict(headers or {})
        if user is not None:
            sent["Authorization"] = f"Bearer {user}-token"
        return _asked(link, method, path, body, sent)

    async def ask_async(
        self, path: str, *, user: str | None = "admin", method: str = "GET", headers: dict[str, str] | None = None
    ) -> Answer:
        return await asyncio.to_thread(self.ask, path, user=user, method=method, headers=headers)

    def ask_local(self, path: str) -> Answer:
        return _asked(http.client.HTTPConnection("127.0.0.1", self.healthz_port, timeout=20), "GET", path)

    def ask_read_only(
        self,
        path: str,
        *,
        user: str | None = None,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: str | None = None,
    ) -> Answer:
        """`user` counts for nothing there."""
        link = http.client.HTTPConnection("127.0.0.1", self._config["read_only_port"], timeout=20)
        return _asked(link, method, path, body, headers)


def _asked(
    link: http.client.HTTPConnection,
    method: str,
    path: str,
    body: str | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    try:
        link.request(method, path, body=body, headers=headers or {})
        response = link.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, response.read())
    finally:
        link.close()
