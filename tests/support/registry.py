"""A real image registry on loopback (Debian's docker-registry), which the engine trusts without TLS."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.nats_server import free_port

USER, PASSWORD = "puller", "open sesame"
_HASH = "$2b$04$cYQW7WTN1VoImR5J.U.LlONlVPHXyf43QJoNH7u8vBn22.cWq2t8e"
"""bcrypt of PASSWORD."""


class Registry:
    """Empty at first; `push` tags a local image as `<address>/<name>` and uploads it. `is_private`: it wants USER and
    PASSWORD."""

    def __init__(self, directory: Path, *, is_private: bool = False) -> None:
        self._directory = directory
        self._is_private = is_private
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"127.0.0.1:{free_port()}"

    def start(self) -> None:
        binary = shutil.which("docker-registry")
        if binary is None:
            if os.environ.get("CI") == "true":
                pytest.fail("docker-registry is missing: run make setup")
            pytest.skip("docker-registry is missing: deploy/setup.sh tests")
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / "registry.yml"
        config.write_text(
            "version: 0.1\nlog: {level: warn}\n"
            f"storage: {{filesystem: {{rootdirectory: {self._directory / 'images'}}}}}\n"
            f"http: {{addr: {self.address}}}\n"
            + (f"auth: {{htpasswd: {{realm: test, path: {self._directory / 'users'}}}}}\n" if self._is_private else "")
        )
        (self._directory / "users").write_text(f"{USER}:{_HASH}\n")
        with (self._directory / "registry.log").open("ab") as log:
            self._process = subprocess.Popen([binary, "serve", str(config)], stdout=log, stderr=log)
        eventually(self._answers, within=15)

    def _answers(self) -> bool:
        host, _, port = self.address.partition(":")
        link = http.client.HTTPConnection(host, int(port), timeout=2)
        try:
            link.request("GET", "/v2/")
            return link.getresponse().status in (200, 401)
        finally:
            link.close()

    def push(self, local: str, name: str) -> str:
        """The reference to pull; the engine keeps no copy under it."""
        reference = f"{self.address}/{name}"
        client = docker_client()
        client.tag(local, f"{self.address}/{name.partition(':')[0]}", name.partition(":")[2] or "latest")
        auth = {"username": USER, "password": PASSWORD} if self._is_private else None
        for line in client.push(reference, stream=True, decode=True, auth_config=auth):
            assert "error" not in line, line
        client.remove_image(reference)
        return reference

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None
