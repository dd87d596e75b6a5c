"""What each service may say and hear on the bus, derived from the registry. Pure: the node's set-up renders it.

Written for the calls that shared.bus makes. A service that isn't an entry's owner or consumer is refused by the
server, whatever its code does. Key-value buckets are streams: reading one means making a consumer of it, which
can't be narrowed to a family of keys; writing is narrowed to the families that the service owns. Dropping the marks
of deleted keys is a call on the stream too: only the owner of a family, whose keys come and go, may do it.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.contracts.registry import BUCKETS, HINTS, KEYS, REQUESTS, SECRET, TOKEN
from shared.contracts.subject import SERVICES, AnyKey, Bucket, ServiceName
from shared.kube.ids import subject_token

CONFIDENTIAL = (SECRET, TOKEN)
"""Whose answers nobody but their consumers gets."""
OPERATOR = "operator"
"""A person with the `nats` command on the node: sees everything of the account."""


@dataclass(frozen=True)
class Permissions:
    """Subjects that may be published and subscribed; everything else is refused.

    Besides, whoever is asked may answer: the server lets a reply to a received request through.
    """

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    never_publish: tuple[str, ...] = ()
    """Wins over `publish`."""
    never_subscribe: tuple[str, ...] = ()


def permissions(service: ServiceName, node: str) -> Permissions:
    """Of one service of the node with this name. Sorted, without doubles."""
    publish: set[str] = set()
    subscribe: set[str] = {f"_INBOX_{service}.>"}
    for request in REQUESTS:
        if request.service == service:
            subscribe.add(request.subject(node))
        if service in request.consumers:
            publish.add(request.subject(node))
    for hint in HINTS:
        if hint.service == service:
            publish.add(hint.subject(node))
        if service in hint.consumers:
            subscribe.add(hint.subject(node))
    for key in KEYS:
        if key.owner == service:
            publish.add(_written(key))
    for bucket in buckets_of(service):
        publish.update(_read(bucket, node))
    for bucket in {key.bucket for key in KEYS if key.owner == service and key.id}:
        publish.update(f"{prefix}.STREAM.MSG.DELETE.KV_{bucket.name}" for prefix in _api(node))
    for verb in ("PING", "INFO", "STATS"):
        # nats.micro: asked of all, of this service, of one process of it
        subscribe.update({f"$SRV.{verb}", f"$SRV.{verb}.podbus-{service}", f"$SRV.{verb}.podbus-{service}.*"})
    return Permissions(tuple(sorted(publish)), tuple(sorted(subscribe)))


def operator_permissions(node: str) -> Permissions:
    """Everything on the node's own account, but the values of Secrets and the tokens of service accounts: not to be
    asked for, nor to be overheard in the answers to whoever may ask, nor to be kept by a stream that listens there."""
    inboxes = tuple(
        f"_INBOX_{service}.>" for service in sorted({name for one in CONFIDENTIAL for name in one.consumers})
    )
    streams = [f"{prefix}.STREAM.{verb}.>" for prefix in _api(node) for verb in ("CREATE", "UPDATE")]
    return Permissions((">",), (">",), tuple(sorted([*(one.subject(node) for one in CONFIDENTIAL), *streams])), inboxes)


def all_permissions(node: str) -> dict[str, Permissions]:
    """User name -> permissions: one user per service, and the operator."""
    found = {str(service): permissions(service, node) for service in SERVICES}
    return {**found, OPERATOR: operator_permissions(node)}


def buckets_of(service: str) -> tuple[Bucket, ...]:
    """The buckets of which the service reads or writes a key: it may list, watch and create just these."""
    used = {key.bucket.name for key in KEYS if service == key.owner or service in key.consumers}
    return tuple(bucket for bucket in BUCKETS if bucket.name in used)


def _written(key: AnyKey) -> str:
    # Not `*`: a UID that a manifest gives may hold dots.
    return f"$KV.{key.bucket.name}.{key.prefix}.>" if key.id else f"$KV.{key.bucket.name}.{key.prefix}"


def _read(bucket: Bucket, node: str) -> set[str]:
    """List, watch, and create the bucket when it is missing: whoever comes first after the store was lost does.

    Creating one that is there changes nothing: with other settings the server answers with an error.
    """
    stream = f"KV_{bucket.name}"
    calls = (
        f"STREAM.INFO.{stream}",
        f"STREAM.CREATE.{stream}",
        f"STREAM.MSG.GET.{stream}",
        f"CONSUMER.CREATE.{stream}",
        f"CONSUMER.CREATE.{stream}.>",
        f"CONSUMER.INFO.{stream}.>",
        f"CONSUMER.DELETE.{stream}.>",
    )
    return {f"{prefix}.{call}" for prefix in _api(node) for call in calls} | {f"$JS.FC.{stream}.>"}


def _api(node: str) -> tuple[str, str]:
    """A server maps its own domain's subjects to the plain ones before it looks at permissions (seen with 2.9.10); a
    node that is reached through a hub sees the domain's."""
    return f"$JS.{subject_token(node)}.API", "$JS.API"
