"""Types of the registry's entries. Subject grammar: `podbus.<node>.<service>.<kind>.<what>[.<id>]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from shared.kube.ids import subject_token

ServiceName = Literal["source", "podworker", "status", "stats", "api"]
SERVICES: tuple[ServiceName, ...] = ("source", "podworker", "status", "stats", "api")

Req = TypeVar("Req")
Rep = TypeVar("Rep")
Body = TypeVar("Body")


def _subject(node: str, service: str, kind: str, what: str, id_: str | None) -> str:
    base = f"podbus.{subject_token(node)}.{service}.{kind}.{what}"
    return base if id_ is None else f"{base}.{id_}"


@dataclass(frozen=True, kw_only=True)
class Request(Generic[Req, Rep]):
    """A query (q: changes nothing) or a command (c), answered by its owner. At least one replica answers."""

    service: ServiceName
    kind: Literal["q", "c"]
    what: str
    request: type[Req]
    reply: type[Rep]
    consumers: tuple[ServiceName, ...]
    summary: str
    example: Req
    example_reply: Rep

    def subject(self, node: str) -> str:
        return _subject(node, self.service, self.kind, self.what, None)


@dataclass(frozen=True, kw_only=True)
class Hint(Generic[Body]):
    """An event (e): fire and forget. Losing one delays something; it never changes the outcome."""

    service: ServiceName
    what: str
    id: str
    """Name of the last token, e.g. "slot"; "" = none."""
    body: type[Body]
    consumers: tuple[ServiceName, ...]
    summary: str
    example: Body

    def subject(self, node: str, id_: str = "*") -> str:
        """The subject of one id, or with the default the pattern of all."""
        return _subject(node, self.service, "e", self.what, id_ if self.id else None)


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A JetStream key-value bucket, history 1. Its stream is `KV_<name>`."""

    name: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class Key(Generic[Body]):
    """A family of keys in a bucket with one writer: `pod.<uid>`, or a single key such as `node`."""

    bucket: Bucket
    prefix: str
    id: str
    """Name of the part behind the prefix; "" = the prefix is the whole key."""
    body: type[Body]
    owner: ServiceName
    consumers: tuple[ServiceName, ...]
    summary: str
    example: Body

    def key(self, id_: str = "") -> str:
        return f"{self.prefix}.{id_}" if self.id else self.prefix

    def id_of(self, key: str) -> str | None:
        """The id in a key of this family ("" for a single key), or None when the key is of another family."""
        if not self.id:
            return "" if key == self.prefix else None
        head, dot, tail = key.partition(".")
        return tail if head == self.prefix and dot else None


AnyRequest = Request[Any, Any]
AnyHint = Hint[Any]
AnyKey = Key[Any]
