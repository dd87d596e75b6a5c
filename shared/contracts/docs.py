"""The registry as documents: AsyncAPI 3.0, and Markdown tables. Pure: values in, values and text out.

`tools/gen_docs.py` writes them; nothing else uses this module.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from shared.contracts.acl import OPERATOR, all_permissions
from shared.contracts.catalogue import all_structs, field_types, messages, type_text
from shared.contracts.envelope import VERSION
from shared.contracts.fingerprints import default_text
from shared.contracts.registry import BUCKETS, HINTS, KEYS, REQUESTS
from shared.contracts.subject import AnyHint, AnyKey, AnyRequest, Hint, Key

FieldTexts = Mapping[str, Mapping[str, str]]
"""Struct name -> Python field name -> what its docstring says; read from the source, for it is gone at run time."""

NODE = "{node}"
_QUEUE = "q"
"""Of nats.micro's endpoints: one of several replicas gets a request."""
_BINDING_VERSION = "0.1.0"
_PARAMETERS = {
    "node": 'The node\'s name; "." is written as "_".',
    "uid": "The pod's UID.",
    "name": "The source: file.",
    "process": "The process's name, as in its log: source, podworker-1.",
    "slot": "The ownership slot, 0 to 255.",
    "worker": "The worker's number.",
}
_KINDS = {"q": "query", "c": "command"}


def address_of(entry: AnyKey | AnyRequest | AnyHint) -> str:
    """The subject with its parameters in braces: `podbus.{node}.podworker.e.released.{slot}`."""
    if isinstance(entry, Key):
        return f"$KV.{entry.bucket.name}.{key_pattern(entry)}"
    if isinstance(entry, Hint):
        return entry.subject(NODE, f"{{{entry.id}}}")
    return entry.subject(NODE)


def key_pattern(key: AnyKey) -> str:
    """`pod.{uid}`, or `node`."""
    return key.key(f"{{{key.id}}}")


# -- AsyncAPI ---------------------------------------------------------------------------------------------------


def asyncapi(version: str, texts: FieldTexts) -> dict[str, Any]:
    """The AsyncAPI 3.0 document of the whole node: an operation is what one service does on one channel.

    `version`: of podbus.
    """
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    for key in KEYS:
        _add_key(key, channels, operations)
    for request in REQUESTS:
        _add_request(request, channels, operations)
    for hint in HINTS:
        _add_hint(hint, channels, operations)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "podbus",
            "version": version,
            "description": (
                "What the services of one podbus node may say to each other on its own nats-server. Each operation "
                "names its service in its tags. Generated from shared/contracts/registry.py by `make docs`."
            ),
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "bus": {
                "host": "127.0.0.1:{port}",
                "protocol": "nats",
                "description": "The node's own nats-server with JetStream, on loopback; one user per service.",
                "variables": {"port": {"description": "Chosen at the first start; in <data>/nats/server.json."}},
                "security": [{"type": "userPassword"}],
            }
        },
        "channels": channels,
        "operations": operations,
        "components": {"messages": _components(), "schemas": _schemas(texts)},
    }


def _add_key(key: AnyKey, channels: dict[str, Any], operations: dict[str, Any]) -> None:
    name = f"{key.bucket.name}.{key.prefix}"
    channels[name] = _channel(key, f"{key.summary} Key `{key_pattern(key)}` of bucket {key.bucket.name}.", key.body)
    operations[f"{key.owner}.put.{name}"] = _operation("send", name, key.owner, "Write the last value.", key.body)
    for consumer in key.consumers:
        summary = "Watch the last value; list it on every (re)connect."
        operations[f"{consumer}.watch.{name}"] = _operation("receive", name, consumer, summary, key.body)


def _add_request(request: AnyRequest, channels: dict[str, Any], operations: dict[str, Any]) -> None:
    name = f"{request.service}.{request.kind}.{request.what}"
    channels[name] = _channel(request, request.summary, request.request)
    channels[f"{name}.reply"] = {
        "address": None,
        "summary": "The asker's inbox. An error has the headers Nats-Service-Error and -Code, and no body.",
        "messages": {request.reply.__name__: _message(request.reply)},
    }
    reply = {
        "channel": _ref("channels", f"{name}.reply"),
        "messages": [_ref("channels", f"{name}.reply", "messages", request.reply.__name__)],
    }
    operations[f"{request.service}.answer.{name}"] = {
        **_operation("receive", name, request.service, "Answer.", request.request),
        "reply": reply,
        "bindings": {"nats": {"queue": _QUEUE, "bindingVersion": _BINDING_VERSION}},
    }
    for consumer in request.consumers:
        ask = _operation("send", name, consumer, "Ask.", request.request)
        operations[f"{consumer}.ask.{name}"] = {**ask, "reply": reply}


def _add_hint(hint: AnyHint, channels: dict[str, Any], operations: dict[str, Any]) -> None:
    name = f"{hint.service}.e.{hint.what}"
    channels[name] = _channel(hint, hint.summary, hint.body)
    operations[f"{hint.service}.tell.{name}"] = _operation("send", name, hint.service, "Tell.", hint.body)
    for consumer in hint.consumers:
        operations[f"{consumer}.hear.{name}"] = _operation("receive", name, consumer, "Hear.", hint.body)


def _channel(entry: AnyKey | AnyRequest | AnyHint, summary: str, body: type) -> dict[str, Any]:
    address = address_of(entry)
    names = [name for name in _PARAMETERS if f"{{{name}}}" in address]
    return {
        "address": address,
        "summary": summary,
        "messages": {body.__name__: _message(body)},
        **({"parameters": {name: {"description": _PARAMETERS[name]} for name in names}} if names else {}),
    }


def _operation(action: str, channel: str, service: str, summary: str, body: type) -> dict[str, Any]:
    return {
        "action": action,
        "channel": _ref("channels", channel),
        "summary": summary,
        "tags": [{"name": service}],
        "messages": [_ref("channels", channel, "messages", body.__name__)],
    }


def _components() -> dict[str, Any]:
    found = {}
    for message in messages():
        name = message.type.__name__
        found[name] = {
            "name": name,
            "payload": _ref("components", "schemas", name),
            "examples": [{"payload": msgspec.json.decode(msgspec.json.encode(message.example))}],
        }
    return dict(sorted(found.items()))


def _schemas(texts: FieldTexts) -> dict[str, Any]:
    roots = list(dict.fromkeys(message.type for message in messages()))
    _, schemas = msgspec.json.schema_components(roots, ref_template="#/components/schemas/{name}")
    for name, struct in all_structs().items():
        if "description" in schemas[name]:
            schemas[name]["description"] = " ".join(schemas[name]["description"].split())
        for field in msgspec.structs.fields(struct):
            if text := texts.get(name, {}).get(field.name):
                properties = schemas[name]["properties"]
                properties[field.encode_name] = _described(properties[field.encode_name], text)
    return dict(sorted(schemas.items()))


def _described(schema: dict[str, Any], text: str) -> dict[str, Any]:
    """JSON Schema draft 7, which AsyncAPI reads, ignores what stands beside a $ref."""
    return {"allOf": [schema], "description": text} if "$ref" in schema else {**schema, "description": text}


def _message(body: type) -> dict[str, str]:
    return _ref("components", "messages", body.__name__)


def _ref(*path: str) -> dict[str, str]:
    return {"$ref": "#/" + "/".join(path)}


# -- Markdown ---------------------------------------------------------------------------------------------------


def subjects_markdown(texts: FieldTexts) -> str:
    """Every bucket, key, request and hint, then every message with its fields."""
    parts = [
        "Every subject has the form `podbus.<node>.<service>.<kind>.<what>[.<id>]`; kind `q` is a query (it changes"
        f" nothing), `c` a command, `e` an event. Messages are JSON, version {VERSION}. Only the owner writes or"
        " answers, only the consumers may read or ask; the bus refuses the rest ([permissions.md](permissions.md))."
        " [asyncapi.yaml](asyncapi.yaml) says the same for tools.",
        "## Buckets",
        markdown_table(("bucket", "holds"), [(f"`{bucket.name}`", bucket.summary) for bucket in BUCKETS]),
        "## Keys",
        "The last value counts, history is 1. A missing key or an empty bucket never means that a pod is to go.",
        markdown_table(("bucket", "key", "owner", "consumers", "message", "what"), map(_key_row, KEYS)),
        "## Requests",
        "Request and reply; of several replicas any one answers (queue group `q` of the micro service).",
        markdown_table(
            ("subject", "kind", "answered by", "asked by", "request", "reply", "what"), map(_request_row, REQUESTS)
        ),
        "## Hints",
        "Fire and forget. A lost one delays something; it never changes the outcome.",
        markdown_table(
            ("subject", "told by", "heard by", "message", "what"),
            [(f"`{address_of(h)}`", h.service, ", ".join(h.consumers), _link(h.body), h.summary) for h in HINTS],
        ),
        "## Messages",
        "Within a version fields are only added, with a default; readers ignore what they don't know. `JSON` is a"
        " document that is passed on unread.",
    ]
    for name, struct in all_structs().items():
        parts.append(f"### {name}")
        if text := doc_of(struct):
            parts.append(text)
        if struct.__struct_config__.omit_defaults and any(not f.required for f in msgspec.structs.fields(struct)):
            parts.append("A field at its default is left out.")
        parts.append(_fields_table(name, struct, texts))
    return "\n\n".join(parts) + "\n"


def doc_of(struct: type[msgspec.Struct]) -> str:
    """Its own docstring on one line; "" when there is none."""
    return " ".join((vars(struct).get("__doc__") or "").split())


def service_markdown(service: str) -> str:
    """One service's part of the registry, for its README."""
    rows = [
        (f"`{key.bucket.name}` `{key_pattern(key)}`", "writes" if key.owner == service else "may read", key.summary)
        for key in KEYS
        if service == key.owner or service in key.consumers
    ]
    for request in REQUESTS:
        if service == request.service or service in request.consumers:
            verb = "answers" if request.service == service else "may ask"
            rows.append((f"`{address_of(request)}`", verb, request.summary))
    for hint in HINTS:
        verbs = [*(["tells"] if hint.service == service else []), *(["hears"] if service in hint.consumers else [])]
        if verbs:
            rows.append((f"`{address_of(hint)}`", ", ".join(verbs), hint.summary))
    return markdown_table(("subject or key", service, "what"), rows)


def permissions_markdown() -> str:
    """What each user of the bus may publish and subscribe."""
    parts = []
    for user, granted in all_permissions(NODE).items():
        parts.append(f"## {user}")
        if user == OPERATOR:
            parts.append("A person with the `nats` command on the node.")
        parts += ["May publish:", _code(granted.publish), "May subscribe:", _code(granted.subscribe)]
        if granted.never_publish:
            parts += ["Never, in spite of that, may publish:", _code(granted.never_publish)]
        if granted.never_subscribe:
            parts += ["Never hears:", _code(granted.never_subscribe)]
    return "\n\n".join(parts) + "\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    """Outside code a `<` would begin a tag."""
    parts = text.replace("|", "\\|").split("`")
    return "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))


def example_text(example: msgspec.Struct) -> str:
    """A golden message: what travels, laid out for people."""
    wire = msgspec.json.decode(msgspec.json.encode(example))
    return json.dumps(wire, indent=2, ensure_ascii=False) + "\n"


def _key_row(key: AnyKey) -> tuple[str, ...]:
    consumers = ", ".join(key.consumers)
    return f"`{key.bucket.name}`", f"`{key_pattern(key)}`", key.owner, consumers, _link(key.body), key.summary


def _request_row(request: AnyRequest) -> tuple[str, ...]:
    return (
        f"`{address_of(request)}`",
        _KINDS[request.kind],
        request.service,
        ", ".join(request.consumers),
        _link(request.request),
        _link(request.reply),
        request.summary,
    )


def _fields_table(name: str, struct: type[msgspec.Struct], texts: FieldTexts) -> str:
    types = field_types(struct)
    rows = [
        (
            f"`{field.encode_name}`",
            f"`{type_text(types[field.name])}`",
            "" if field.required else f"`{default_text(field)}`",
            texts.get(name, {}).get(field.name, ""),
        )
        for field in msgspec.structs.fields(struct)
    ]
    return markdown_table(("field", "type", "default", "meaning"), rows) if rows else "No fields."


def _code(lines: Iterable[str]) -> str:
    return "\n".join(["```text", *lines, "```"])


def _link(body: type) -> str:
    return f"[{body.__name__}](#{body.__name__.lower()})"
