"""Which credentials a registry is shown for an image: those of the pod's imagePullSecrets, as the kubelet picks them.

A password is in no repr, no message and no record: `fingerprint` stands for it.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b

import msgspec

from services.podworker.core.config_objects import ConfigObject
from services.podworker.core.images import InvalidReference, parse_reference

DOCKER_CONFIG_JSON = "kubernetes.io/dockerconfigjson"
DOCKER_CFG = "kubernetes.io/dockercfg"
_HUB = "index.docker.io"
_HUB_NAMES = ("docker.io", _HUB)


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """A user of a registry."""

    username: str
    password: str
    server: str
    """The registry as the Secret names it."""
    secret: str
    """The Secret's name."""

    def __repr__(self) -> str:
        return f"Credential({self.username}@{self.server} of {self.secret})"

    @property
    def fingerprint(self) -> str:
        """The same for the same user and password, whatever Secret holds them."""
        return blake2b(f"{self.username}\0{self.password}".encode(), digest_size=16, person=b"podbus-pull").hexdigest()


class UnusableSecret(ValueError):
    """`str(error)` says why, without a value."""


class _Entry(msgspec.Struct, frozen=True):
    username: str = ""
    password: str = ""
    auth: str = ""


class _ConfigJson(msgspec.Struct, frozen=True):
    auths: dict[str, _Entry] = {}


def pull_secret_names(names: Iterable[str]) -> list[str]:
    """Each once, in the pod's order."""
    return list(dict.fromkeys(name for name in names if name))


def credentials_of(secret: ConfigObject) -> list[Credential]:
    """All that an image pull secret holds, by registry in the order of its text. Raises UnusableSecret."""
    return [
        Credential(username=user, password=password, server=server, secret=secret.name)
        for server, entry in _entries(secret).items()
        for user, password in [_user_of(server, entry)]
    ]


def _entries(secret: ConfigObject) -> Mapping[str, _Entry]:
    key = {DOCKER_CONFIG_JSON: ".dockerconfigjson", DOCKER_CFG: ".dockercfg"}.get(secret.type)
    if key is None:
        raise UnusableSecret(f"its type {secret.type} is neither {DOCKER_CONFIG_JSON} nor {DOCKER_CFG}")
    text = secret.data.get(key, b"")
    try:
        if secret.type == DOCKER_CONFIG_JSON:
            return msgspec.json.decode(text, type=_ConfigJson).auths
        return msgspec.json.decode(text, type=dict[str, _Entry])
    except msgspec.DecodeError:
        raise UnusableSecret(f"its key {key} isn't a list of registries in JSON") from None


def _user_of(server: str, entry: _Entry) -> tuple[str, str]:
    """kubelet: `auth` is base64 of "user:password", and wins."""
    if not entry.auth:
        return entry.username, entry.password
    padded = entry.auth.rstrip("=") + "=" * (-len(entry.auth.rstrip("=")) % 4)
    try:
        user, colon, password = base64.b64decode(padded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        colon = ""
    if not colon:
        raise UnusableSecret(f'the "auth" of {server} isn\'t base64 of user:password')
    return user, password


def matching(credentials: Iterable[Credential], reference: str) -> list[Credential]:
    """Those for the image's registry and path, the longest match first, then in the given order; the same user and
    password only once. None = the registry is asked without.

    kubelet: DockerKeyring.Lookup.
    """
    try:
        repository = parse_reference(reference).name
    except InvalidReference:
        return []
    target = _split(repository)
    keyed: dict[str, list[Credential]] = {}
    for credential in credentials:
        keyed.setdefault(_key(credential.server), []).append(credential)
    found = [c for key in sorted(keyed, reverse=True) if _matches(_split(key), target) for c in keyed[key]]
    if not found and _is_on_hub(repository):
        found = keyed.get(_HUB, [])
    return list(_each_once(found))


def _each_once(found: Iterable[Credential]) -> Iterator[Credential]:
    seen: set[str] = set()
    for credential in found:
        if credential.fingerprint not in seen:
            seen.add(credential.fingerprint)
            yield credential


def _key(server: str) -> str:
    """`https://registry.test/v1/` -> `registry.test`; a path narrows."""
    host, path = _split(server)
    if path.startswith(("/v1/", "/v2/")):
        path = path[3:]
    return host if path in ("", "/") else host + path


def _split(text: str) -> tuple[str, str]:
    """(host with its port, path with its slash), without the scheme."""
    host, slash, path = text.removeprefix("https://").removeprefix("http://").partition("/")
    return host, slash + path


def _matches(pattern: tuple[str, str], target: tuple[str, str]) -> bool:
    """Each part of the host may hold `*`; ports must be equal; the path is a beginning."""
    (host, _, port), (wanted, _, wanted_port) = pattern[0].partition(":"), target[0].partition(":")
    ours, theirs = host.split("."), wanted.split(".")
    return (
        port == wanted_port
        and len(ours) == len(theirs)
        and all(fnmatch.fnmatchcase(part, glob) for glob, part in zip(ours, theirs, strict=True))
        and target[1].startswith(pattern[1])
    )


def _is_on_hub(repository: str) -> bool:
    first, slash, _ = repository.partition("/")
    return not slash or first in _HUB_NAMES or not any(c in first for c in ".:")


def failures(messages: Iterable[str]) -> str:
    """Of several credentials that were all refused: each text once, as Go prints an aggregate."""
    texts = list(dict.fromkeys(messages))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
