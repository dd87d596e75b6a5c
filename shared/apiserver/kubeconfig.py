"""A kubeconfig's current context: which API server, and how to show who we are."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class KubeconfigError(ValueError):
    """Which key, and what is wrong with it; never a value that may be secret."""


Pem = bytes | Path | None
"""The text itself, or the file that holds it."""


@dataclass(frozen=True)
class ApiServer:
    host: str
    port: int
    base: str
    """Path before /apis, without a slash at its end."""
    secure: bool
    tls_name: str
    """That the certificate must be for; "" = the host."""
    verify: bool
    authority: Pem
    certificate: Pem
    key: Pem = field(repr=False)
    token: str = field(repr=False)
    token_file: Path | None

    @property
    def files(self) -> list[Path]:
        """That must be read again when they change."""
        named = (self.authority, self.certificate, self.key, self.token_file)
        return [path for path in named if isinstance(path, Path)]


def current_server(document: Any, directory: Path) -> ApiServer:
    """Relative paths count from `directory`, the kubeconfig's own. Raises KubeconfigError."""
    if not isinstance(document, dict):
        raise KubeconfigError("must be an object")
    name = document.get("current-context")
    if not isinstance(name, str) or not name:
        raise KubeconfigError("current-context: is missing")
    context = _named(document, "contexts", "context", name)
    cluster = _named(document, "clusters", "cluster", _text(context, "cluster"))
    user = _named(document, "users", "user", _text(context, "user")) if context.get("user") else {}
    for way in ("exec", "auth-provider", "username"):
        if user.get(way):
            raise KubeconfigError(f"users: {way} can't be used here; use a client certificate or a token")
    server = _text(cluster, "server")
    try:
        parts = urlsplit(server if "://" in server else f"https://{server}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https"):
        raise KubeconfigError("clusters: server: must be an http or https URL with a host")
    certificate, key = _pem(user, "client-certificate", directory), _pem(user, "client-key", directory)
    if (certificate is None) != (key is None):
        raise KubeconfigError("users: client-certificate and client-key belong together")
    token_file = _text(user, "tokenFile")
    return ApiServer(
        host=host,
        port=port or (443 if parts.scheme == "https" else 80),
        base=parts.path.rstrip("/"),
        secure=parts.scheme == "https",
        tls_name=_text(cluster, "tls-server-name"),
        verify=cluster.get("insecure-skip-tls-verify") is not True,
        authority=_pem(cluster, "certificate-authority", directory),
        certificate=certificate,
        key=key,
        token=_text(user, "token"),
        token_file=directory / token_file if token_file else None,
    )


def _named(document: Mapping[str, Any], plural: str, key: str, name: str) -> Mapping[str, Any]:
    listed = document.get(plural)
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict) and item.get("name") == name and isinstance(item.get(key), dict):
            found: Mapping[str, Any] = item[key]
            return found
    raise KubeconfigError(f"{plural}: none is named {name!r}")


def _text(place: Mapping[str, Any], key: str) -> str:
    value = place.get(key) or ""
    if not isinstance(value, str):
        raise KubeconfigError(f"{key}: must be a string")
    return value


def _pem(place: Mapping[str, Any], key: str, directory: Path) -> Pem:
    """kubectl: the data counts before the file."""
    if encoded := _text(place, f"{key}-data"):
        try:
            return b64decode(encoded, validate=True)
        except ValueError:
            raise KubeconfigError(f"{key}-data: is not base64") from None
    path = _text(place, key)
    return directory / path if path else None
