"""ConfigMaps and Secrets as a pod is given them. A value is in no repr and in no message of an error."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shared.kube.references import ConfigKind, ConfigRef


class ConfigError(Exception):
    """A container can't be configured (CreateContainerConfigError); its text names object and key, never a value."""


class ConfigObject(msgspec.Struct, frozen=True, kw_only=True):
    kind: ConfigKind
    namespace: str
    name: str
    type: str = ""
    """Of a Secret."""
    data: Mapping[str, bytes] = {}
    binary: Mapping[str, bytes] = {}
    """Of a ConfigMap: usable in volumes only."""

    def __repr__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def files(self) -> dict[str, bytes]:
        """All keys that a volume shows."""
        return {**self.data, **self.binary}


Objects = Mapping[ConfigRef, ConfigObject | None]
"""What a pod refers to; None = there is no such object."""


def not_found(ref: ConfigRef) -> str:
    """The kubelet's words."""
    return f'{ref.kind.lower()} "{ref.name}" not found'


def keys_of(found: ConfigObject) -> str:
    """For messages: what could have been meant."""
    names = sorted(found.files)
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"its keys: {shown}" if names else "it has no keys"
