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
