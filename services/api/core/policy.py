"""policy.yaml: who, by name or group, may do what on which paths, besides the local roles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from services.api.core.access import VERBS, Identity, is_under, verb_of

_KEYS = ("users", "groups", "verbs", "paths")
ALL = "*"


@dataclass(frozen=True)
class Rule:
    users: frozenset[str]
    groups: frozenset[str]
    verbs: frozenset[str]
    paths: tuple[str, ...]

    def allows(self, who: Identity, verb: str, path: str) -> bool:
        if who.user not in self.users and not self.groups.intersection(who.groups):
            return False
        if ALL not in self.verbs and verb not in self.verbs:
            return False
        return ALL in self.paths or is_under(path, self.paths)


@dataclass(frozen=True)
class Policy:
    """Rules only allow: what one doesn't, another may."""

    rules: tuple[Rule, ...] = ()

    def allows(self, who: Identity, method: str, path: str) -> bool:
        return any(rule.allows(who, verb_of(method), path) for rule in self.rules)


def read_policy(document: Any) -> tuple[Policy, list[str]]:
    """(the policy, what is wrong). With anything wrong the policy is empty: half of one may allow too much."""
    if document is None:
        return Policy(), []
    if not isinstance(document, dict) or not isinstance(document.get("rules"), list):
        return Policy(), ["rules: must be a list"]
    problems = [f"{key}: unknown key" for key in document if key != "rules"]
    rules = [_rule(item, f"rules[{number}]", problems) for number, item in enumerate(document["rules"])]
    return (Policy(), problems) if problems else (Policy(tuple(rules)), [])


def _rule(item: Any, place: str, problems: list[str]) -> Rule:
    if not isinstance(item, dict):
        problems.append(f"{place}: must be an object")
        return Rule(frozenset(), frozenset(), frozenset(), ())
    problems += [f"{place}.{key}: unknown key" for key in item if key not in _KEYS]
    found = {key: _texts(item.get(key), f"{place}.{key}", problems) for key in _KEYS}
    if not found["users"] and not found["groups"]:
        problems.append(f"{place}: names neither users nor groups")
    problems += [f"{place}.{key}: is missing" for key in ("verbs", "paths") if not found[key]]
    known = {ALL, *VERBS}
    problems += [
        f"{place}.verbs: {verb!r} is none of {', '.join(sorted(known))}" for verb in found["verbs"] if verb not in known
    ]
    for path in found["paths"]:
        if path != ALL and (not path.startswith("/") or path == "/" or "//" in path or "*" in path or "/." in path):
            problems.append(f"{place}.paths: {path!r} is neither '*' nor a path such as /containerLogs/default")
    paths = tuple(path if path == ALL else path.rstrip("/") for path in found["paths"])
    return Rule(frozenset(found["users"]), frozenset(found["groups"]), frozenset(found["verbs"]), paths)


def _texts(value: Any, place: str, problems: list[str]) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        problems.append(f"{place}: must be a list of strings")
        return []
    return list(value)
