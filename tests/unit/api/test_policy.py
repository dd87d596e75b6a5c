"""The policy file: what its rules allow, and what is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from services.api.adapters.policy_file import PolicyFile
from services.api.core.access import Identity
from services.api.core.policy import read_policy

BOB = Identity("bob", ("ops", "system:authenticated"))
LOGS = {"users": ["bob"], "verbs": ["get"], "paths": ["/containerLogs/default"]}


def _allows(rule: dict[str, Any], who: Identity, method: str, path: str) -> bool:
    policy, problems = read_policy({"rules": [rule]})
    assert problems == []
    return policy.allows(who, method, path)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/containerLogs/default/p/c", True),
        ("GET", "/containerLogs/default", True),
        ("GET", "/containerLogs/default2/p/c", False),
        ("GET", "/containerLogs", False),
        ("POST", "/containerLogs/default/p/c", False),
        ("HEAD", "/containerLogs/default/p/c", False),
    ],
)
def test_a_rule_counts_for_its_verbs_and_below_its_paths(method: str, path: str, allowed: bool) -> None:
    assert _allows(LOGS, BOB, method, path) is allowed


def test_a_rule_counts_for_its_users_and_groups_only() -> None:
    rule = {"groups": ["ops"], "verbs": ["*"], "paths": ["*"]}
    assert _allows(rule, BOB, "POST", "/exec/a/b/c")
    assert not _allows(rule, Identity("ops", ("system:authenticated",)), "GET", "/pods")
    assert not _allows(LOGS, Identity("bobby"), "GET", "/containerLogs/default/p/c")


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({**LOGS, "users": []}, "rules[0]: names neither users nor groups"),
        ({**LOGS, "verbs": ["read"]}, "rules[0].verbs: 'read' is none of *, create, delete, get, patch, update"),
        ({**LOGS, "verbs": "get"}, "rules[0].verbs: must be a list of strings"),
        ({**LOGS, "paths": ["pods"]}, "rules[0].paths: 'pods' is neither '*' nor a path such as"),
        ({**LOGS, "paths": ["/exec/*"]}, "rules[0].paths: '/exec/*' is neither"),
        ({**LOGS, "path": ["/pods"]}, "rules[0].path: unknown key"),
        ({"users": ["a"], "verbs": ["get"]}, "rules[0].paths: is missing"),
    ],
)
def test_a_wrong_rule_is_named_and_nothing_is_allowed(rule: dict[str, Any], text: str) -> None:
    policy, problems = read_policy({"rules": [rule, LOGS]})
    assert any(problem.startswith(text) for problem in problems), problems
    assert not policy.allows(BOB, "GET", "/containerLogs/default/p/c")


@pytest.mark.parametrize("document", ["x", [], {"rules": {}}, {"rule": []}])
def test_what_is_no_policy_allows_nothing(document: Any) -> None:
    policy, problems = read_policy(document)
    assert problems and policy.rules == ()


def test_the_file_counts_anew_when_it_changes_and_not_at_all_when_it_is_wrong(tmp_path: Path) -> None:
    path, now = tmp_path / "policy.yaml", [0.0]
    policy = PolicyFile(path, lambda: now[0])

    def allowed_after(text: str | None) -> bool:
        now[0] += 2.0
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
            os.utime(path, (now[0], now[0]))
        return policy.allows(BOB, "GET", "/pods")

    good = "rules:\n- users: [bob]\n  verbs: [get]\n  paths: [/pods]\n"
    assert not allowed_after(None)
    assert allowed_after(good)
    assert not allowed_after(good + "  typo: 1\n")
    assert allowed_after(good)
    assert not allowed_after("rules: [")
    assert allowed_after(good)
    assert not allowed_after(None)
