"""The Node as the API server has it: read loosely, for others write to it too, and they may be newer than we."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class OwnerMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    uid: str = ""
    creation_timestamp: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class RemoteNode(msgspec.Struct, frozen=True, kw_only=True):
    metadata: OwnerMetadata
    spec: Mapping[str, Any] = {}
    status: Mapping[str, Any] = {}

    @property
    def unschedulable(self) -> bool:
        return self.spec.get("unschedulable") is True

    @property
    def pod_cidrs(self) -> list[str]:
        several = self.spec.get("podCIDRs")
        if isinstance(several, list) and several:
            return [str(one) for one in several]
        one = self.spec.get("podCIDR")
        return [str(one)] if one else []


def parse_remote_node(body: bytes) -> RemoteNode:
    """Raises msgspec.MsgspecError."""
    return msgspec.json.decode(body, type=RemoteNode)
