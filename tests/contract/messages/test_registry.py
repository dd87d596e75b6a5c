"""The registry's own rules: unambiguous addresses, and code that keeps to the registered owners and consumers."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import shared.contracts.registry as registry
from shared.contracts.acl import permissions
from shared.contracts.catalogue import messages
from shared.contracts.docs import asyncapi
from shared.contracts.registry import BUCKETS, HINTS, KEYS, REQUESTS
from shared.contracts.subject import SERVICES, AnyKey, Bucket, Hint, Key, Request

ROOT = Path(__file__).parents[3]
NODE = "n1.example"
NAMES = {name: value for name, value in vars(registry).items() if isinstance(value, Request | Hint | Key | Bucket)}
ENTRIES: list[Any] = [*KEYS, *REQUESTS, *HINTS]
IDS = ("0f3c6b2e9a7d4c518e6f70a1b2c3d4e5", "a.b", "7")
OWNER_CALLS = {"serve", "put", "delete", "hint"}
CONSUMER_CALLS = {"request", "on_hint"}


def owner(entry: Any) -> str:
    return str(entry.owner if isinstance(entry, Key) else entry.service)


def pattern(entry: Any) -> str:
    """As the bus matches it: what the owner may write, or what its askers and listeners use."""
    if isinstance(entry, Key):
        return f"$KV.{entry.bucket.name}.{entry.prefix}" + (".>" if entry.id else "")
    return str(entry.subject(NODE))


def built(entry: Any) -> list[str]:
    """Subjects that the entry makes, for several ids."""
    if isinstance(entry, Key):
        return [f"$KV.{entry.bucket.name}.{entry.key(id_)}" for id_ in (IDS if entry.id else ("",))]
    if isinstance(entry, Hint) and entry.id:
        return [entry.subject(NODE, id_) for id_ in ("0", "255")]
    return [entry.subject(NODE)]


def matches(pattern: str, subject: str) -> bool:
    """NATS: `*` is one token, `>` at the end one or more."""
    wanted, tokens = pattern.split("."), subject.split(".")
    for index, token in enumerate(wanted):
        if token == ">":
            return len(tokens) > index
        if index >= len(tokens) or token not in ("*", tokens[index]):
            return False
    return len(wanted) == len(tokens)


def name_of(entry: Any) -> str:
    return next((name for name, value in NAMES.items() if value is entry), "?")


@pytest.mark.parametrize("entry", ENTRIES, ids=name_of)
def test_a_pattern_matches_the_subjects_that_it_builds(entry: Any) -> None:
    """Whatever the id."""
    assert all(matches(pattern(entry), subject) for subject in built(entry))


@pytest.mark.parametrize("entry", ENTRIES, ids=name_of)
def test_a_pattern_matches_no_other_entry(entry: Any) -> None:
    """So no permission for one opens another."""
    others = [other for other in ENTRIES if other is not entry]
    assert [name_of(o) for o in others for subject in built(o) if matches(pattern(entry), subject)] == []


@pytest.mark.parametrize("key", KEYS, ids=name_of)
def test_a_key_is_recognized_by_its_own_family_only(key: AnyKey) -> None:
    """A reader of a bucket tells families apart by the key."""
    for id_ in IDS if key.id else ("",):
        assert key.id_of(key.key(id_)) == id_
        others = [other for other in KEYS if other.bucket is key.bucket and other is not key]
        assert all(other.id_of(key.key(id_)) is None for other in others)


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_may_write_only_what_it_owns(service: Any) -> None:
    """The permissions of the bus say the same as the registry."""
    allowed = permissions(service, NODE).publish
    for entry in KEYS:
        may = any(matches(rule, subject) for rule in allowed for subject in built(entry))
        assert may == (entry.owner == service), name_of(entry)
    for hint in HINTS:
        assert (hint.subject(NODE) in allowed) == (hint.service == service), name_of(hint)
    for request in REQUESTS:
        assert (request.subject(NODE) in allowed) == (service in request.consumers), name_of(request)


def test_every_entry_is_in_its_list() -> None:
    """Docs, permissions and tests go through the lists."""
    listed = {id(entry) for entry in [*ENTRIES, *BUCKETS]}
    assert [name for name, value in NAMES.items() if id(value) not in listed] == []


def test_places_and_keys_are_unique() -> None:
    """Two entries with one address would be one."""
    places = [message.place for message in messages()]
    assert len(set(places)) == len(places)
    assert len({pattern(entry) for entry in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("entry", [*ENTRIES, *BUCKETS], ids=name_of)
def test_an_entry_says_what_it_is_for(entry: Any) -> None:
    """The summary is what a person reads in the documents."""
    assert entry.summary.endswith(".")
    assert len(entry.summary) > 15


def test_every_reference_in_the_asyncapi_document_leads_somewhere() -> None:
    """Tools follow them."""
    document = asyncapi("0", {})

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [ref for inner in value.values() for ref in references(inner)]
        return [ref for inner in value for ref in references(inner)] if isinstance(value, list) else []

    for reference in references(document):
        found: Any = document
        for part in reference.removeprefix("#/").split("/"):
            assert part in found, reference
            found = found[part]


def test_every_parameter_of_an_address_is_described() -> None:
    """AsyncAPI: each expression in an address needs one."""
    for name, channel in asyncapi("0", {})["channels"].items():
        address = channel["address"] or ""
        in_address = {part[1:-1] for part in address.split(".") if part.startswith("{")}
        assert in_address == set(channel.get("parameters", {})), name


# -- the code ---------------------------------------------------------------------------------------------------


def users(name: str) -> set[str]:
    """Who may have anything to do with the registry's entry of that name."""
    entry = NAMES[name]
    if isinstance(entry, Bucket):
        keys = [key for key in KEYS if key.bucket is entry]
        return {user for key in keys for user in (key.owner, *key.consumers)}
    return {owner(entry), *entry.consumers}


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(tree: ast.AST) -> list[tuple[str, int]]:
    """Names of the registry that a module imports, with the line."""
    return [
        (alias.name, node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "shared.contracts.registry"
        for alias in node.names
    ]


def bus_calls(tree: ast.AST) -> list[tuple[str, str, int]]:
    """(method, name of the entry, line) of every call that gives an entry of the registry to the bus."""
    return [
        (node.func.attr, node.args[0].id, node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.args
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id in NAMES
    ]


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_uses_only_what_it_owns_or_consumes(service: str) -> None:
    """Found in the source, so that it fails before the bus refuses it."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} uses {name}, which is for {', '.join(sorted(users(name)))}"
        for path in modules(f"services/{service}")
        for name, line in imported(ast.parse(path.read_text()))
        if name in NAMES and service not in users(name)
    ]
    assert wrong == []


@pytest.mark.parametrize("service", SERVICES)
def test_only_the_owner_writes_and_answers(service: str) -> None:
    """serve, put, delete and hint are the owner's; request and on_hint the consumers'."""
    wrong = []
    for path in modules(f"services/{service}"):
        for method, name, line in bus_calls(ast.parse(path.read_text())):
            entry: Any = NAMES[name]
            if (method in OWNER_CALLS and owner(entry) != service) or (
                method in CONSUMER_CALLS and service not in entry.consumers
            ):
                wrong.append(f"{path.relative_to(ROOT)}:{line} {method}({name})")
    assert wrong == []


def test_the_search_for_uses_finds_what_there_is() -> None:
    """Else the two tests above would pass on anything."""
    calls = {call[:2] for path in modules("services") for call in bus_calls(ast.parse(path.read_text()))}
    assert ("serve", "STREAM") in calls
    assert ("put", "POD_REPORT") in calls
    assert ("request", "SUMMARY") in calls
    assert ("on_hint", "WORKER_HEARTBEAT") in calls


@pytest.mark.parametrize("request_", REQUESTS, ids=name_of)
def test_every_request_is_answered(request_: Any) -> None:
    """By exactly one place in its owner."""
    served = [
        path
        for path in modules(f"services/{request_.service}")
        for method, name, _ in bus_calls(ast.parse(path.read_text()))
        if (method, name) == ("serve", name_of(request_))
    ]
    assert len(served) == 1


def test_no_service_writes_subjects_by_hand() -> None:
    """Subjects and keys are made by the registry's entries only; the supervisor, which has no client, speaks the
    server's own protocol in one place."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("services", "cli", "shared/runtime", "shared/streams", "shared/storage")
        for path in modules(folder)
        if path.name != "bus_liveness.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and (node.value.startswith(("$KV.", "$JS.", "_INBOX")) or node.value in {b.name for b in BUCKETS})
    ]
    assert wrong == []
