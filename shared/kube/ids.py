"""Ids that must not be mixed up, as their own types."""

from __future__ import annotations

from hashlib import blake2b
from typing import NewType

PodUID = NewType("PodUID", str)
"""A pod's UID: 32 hex digits for generated static pods, else whatever `metadata.uid` holds."""

ContainerID = NewType("ContainerID", str)
"""Docker's 64 hex digits, without the `docker://` prefix."""

NodeName = NewType("NodeName", str)

SLOTS = 256
"""Number of ownership slots of a node. Changing it needs all workers stopped once."""


def slot_of(namespace: str, name: str) -> int:
    """The ownership slot (0..255) of a pod: by name and not by UID, so that an edited static pod's new version
    (a new UID) waits for the old one at the same owner."""
    digest = blake2b(f"{namespace}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % SLOTS


def subject_token(node: str) -> str:
    """A node name as a NATS subject token and JetStream domain: "." would split the subject, "_" can't occur in
    a DNS name, so the mapping is reversible."""
    return node.replace(".", "_")
