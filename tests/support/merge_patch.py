"""What an API server makes of a strategic merge patch of a Node, as far as the node's own patches need it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from services.status.core.remote_node import RemoteNode, parse_remote_node

_MERGE_KEYS = {"conditions": "type", "addresses": "type"}


def merged_node(remote: RemoteNode, patch: Mapping[str, Any]) -> RemoteNode:
    return parse_remote_node(json.dumps(merged(msgspec.to_builtins(remote), patch)).encode())


def merged(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`null` deletes, maps merge, the lists with a key merge by it, all others are replaced."""
    result = dict(document)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            result[name] = merged(result.get(name) or {}, value)
        elif name in _MERGE_KEYS:
            result[name] = _merged_list(result.get(name) or [], value, _MERGE_KEYS[name])
        else:
            result[name] = value
    return result


def _merged_list(before: list[dict[str, Any]], patch: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    items = [item for item in patch if "$patch" not in item]
    if len(items) < len(patch):
        return items
    by_key = {item[key]: item for item in before}
    for item in items:
        by_key[item[key]] = {**by_key.get(item[key], {}), **item}
    return list(by_key.values())
