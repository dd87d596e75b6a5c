"""What an API server makes of a strategic merge patch, as far as a node's own patches of Nodes and pods need it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from services.status.core.remote_node import RemoteNode, parse_remote_node

_MERGE_KEYS = {"conditions": "type", "addresses": "type", "podIPs": "ip", "hostIPs": "ip"}


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
    told = [item for item in patch if "$patch" in item]
    if any(item["$patch"] == "replace" for item in told):
        assert before, "kube-apiserver takes the instruction for an entry where there is no list yet"
        return items
    gone = {item[key] for item in told if item["$patch"] == "delete"}
    by_key = {item[key]: item for item in before if item[key] not in gone}
    for item in items:
        by_key[item[key]] = merged(by_key.get(item[key], {}), item)
    return list(by_key.values())
