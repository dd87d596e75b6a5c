"""The CLI's side of the API: HTTPS with the admin's kubeconfig, errors that say what to do."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from shared.runtime.paths import DataPaths

TIMEOUT_SECONDS = 15.0


class ClientError(Exception):
    """The request has failed; the text is for people. `status`: of the answer, 0 when there was none."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Target:
    """What a kubeconfig says."""

    host: str
    port: int
    server_name: str
    authorities: str
    """PEM."""
    token: str


class Client:
    """One node's API. Each request is a connection of its own."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._tls = ssl.create_default_context(cadata=target.authorities or None)
        # an operator's own serving certificate may be trusted by itself
        self._tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """The decoded JSON. Raises ClientError."""
        body = b"".join(self.stream(path, query, timeout=TIMEOUT_SECONDS))
        try:
            return json.loads(body)
        except ValueError as error:
            raise ClientError(f"{path}: the API's answer is not JSON: {error}") from error

    def stream(
        self, path: str, query: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> Iterator[bytes]:
        """The body as it comes. `timeout`: between two parts, None = for ever. Raises ClientError."""
        target = quote(path) + (f"?{urlencode(query)}" if query else "")
        link = _Connection(self._target, self._tls)
        try:
            link.request("GET", target, headers={"Authorization": f"Bearer {self._target.token}"})
            answer = link.getresponse()
            if answer.status >= 400:
                raise ClientError(_reason(answer), answer.status)
            if link.sock is not None:
                link.sock.settimeout(timeout)
            while part := answer.read1(65536):
                yield part
        except (OSError, http.client.HTTPException) as error:
            raise ClientError(self._why(error)) from error
        finally:
            link.close()

    def _why(self, error: Exception) -> str:
        where = f"https://{self._target.host}:{self._target.port}"
        if isinstance(error, ConnectionRefusedError):
            return f"nothing listens on {where}: is the node up? `podbus up` starts it"
        if isinstance(error, ssl.SSLError):
            return f"{where} is not this data directory's node: {error}"
        if isinstance(error, TimeoutError):
            return f"{where} doesn't answer"
        return f"{where}: {error or type(error).__name__}"


class _Connection(http.client.HTTPSConnection):
    """Connects to one address and expects the certificate of another name."""

    def __init__(self, target: Target, tls: ssl.SSLContext) -> None:
        super().__init__(target.host, target.port, timeout=TIMEOUT_SECONDS, context=tls)
        self._tls = tls
        self._server_name = target.server_name or target.host

    def connect(self) -> None:
        plain = socket.create_connection((self.host, self.port), self.timeout)
        self.sock = self._tls.wrap_socket(plain, server_hostname=self._server_name)


def client_of(data: str) -> Client:
    """Of the node with this data directory. Raises ClientError."""
    return Client(target_of(data))


def target_of(data: str) -> Target:
    """Where the node with this data directory is. Raises ClientError."""
    return read_kubeconfig(DataPaths(Path(data).absolute()).admin_kubeconfig)


def read_kubeconfig(path: Path) -> Target:
    """The current context. Raises ClientError."""
    import yaml

    try:
        document = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ClientError(f"{path} is missing: was the node ever started? (--data names its directory)") from error
    except PermissionError as error:
        raise ClientError(f"{path} may be read by root only: use sudo") from error
    except yaml.YAMLError as error:
        raise ClientError(f"{path}: {' '.join(str(error).split())}") from error
    try:
        context = _named(document["contexts"], document["current-context"])["context"]
        cluster = _named(document["clusters"], context["cluster"])["cluster"]
        user = _named(document["users"], context["user"])["user"]
        server = urlsplit(cluster["server"])
        return Target(
            host=server.hostname or "127.0.0.1",
            port=server.port or 443,
            server_name=cluster.get("tls-server-name", ""),
            authorities=base64.b64decode(cluster["certificate-authority-data"]).decode(),
            token=user["token"],
        )
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        raise ClientError(f"{path} is no kubeconfig of podbus: {type(error).__name__} {error}") from error


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _reason(answer: http.client.HTTPResponse) -> str:
    text = answer.read(4096).decode(errors="replace").strip()
    try:
        message = json.loads(text)["message"]
    except (ValueError, KeyError, TypeError):
        message = text
    if answer.status == 401:
        return "the node doesn't accept this token (401): was pki/tokens.csv changed?"
    return str(message) or f"{answer.status} {answer.reason}"
