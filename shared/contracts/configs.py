"""ConfigMaps and Secrets: asked for one by one, by the pod that refers to them. They are in no bucket, so that what
may not be stored is handled in one way with what may."""

from __future__ import annotations

import msgspec


class ConfigMapQuery(msgspec.Struct, frozen=True, kw_only=True):
    """source.q.configmap: an object of the pod's namespace. `forbidden` when the pod doesn't refer to it, `not_found`
    when there is none, `unavailable` while the sources haven't been listed yet."""

    uid: str
    """Of the pod."""
    name: str


class ConfigMapData(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    data: dict[str, bytes] = {}
    """Texts as UTF-8 bytes: in base64 a message's size has a bound, with JSON's escapes it hasn't."""
    binary_data: dict[str, bytes] = {}


class SecretQuery(msgspec.Struct, frozen=True, kw_only=True):
    """source.c.secret: a command, though it changes nothing, so that it's never answered from a copy. Refused like a
    ConfigMap's query."""

    uid: str
    """Of the pod."""
    name: str


class SecretData(msgspec.Struct, frozen=True, kw_only=True):
    """The only message with a Secret's values: from source to the worker that asked, stored nowhere."""

    namespace: str
    name: str
    type: str = "Opaque"
    data: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"SecretData({self.namespace}/{self.name})"


class ConfigsChanged(msgspec.Struct, frozen=True, kw_only=True):
    """source.e.configs: what these pods refer to has changed, come or gone."""

    uids: list[str]


class TokenQuery(msgspec.Struct, frozen=True, kw_only=True):
    """source.c.token: a token of the pod's service account, bound to the pod. `forbidden` when no volume of the pod
    asks for such a one, `unavailable` when the API server gives none now."""

    uid: str
    """Of the pod."""
    audience: str = ""
    """"" = the API server's own."""
    seconds: int = 3600
    """Of life that are asked for; the server may give fewer or more."""


class TokenData(msgspec.Struct, frozen=True, kw_only=True):
    """From source to the worker that asked, stored nowhere but in the pod's volume in memory."""

    token: str
    expires_at: float

    def __repr__(self) -> str:
        return f"TokenData(expires_at={self.expires_at})"


class ServicesQuery(msgspec.Struct, frozen=True, kw_only=True):
    """source.q.services: `unavailable` until the services were listed once."""

    uid: str
    """Of a pod of the API."""


class ServiceVariables(msgspec.Struct, frozen=True, kw_only=True):
    """What a container of the pod is told of the services that there are."""

    variables: dict[str, str] = {}
