"""The documents name what the code has, and nothing that it hasn't."""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path

import pytest

from cli.main import build_parser
from shared.contracts.registry import BUCKETS, HINTS, KEYS, REQUESTS
from shared.contracts.subject import SERVICES
from shared.runtime.config_reader import _ALL_PATHS as CONFIG_FIELDS
from shared.runtime.settings import VARIABLES
from tests.architecture.tree import CODE, ROOT, python_files, text, tracked

README = ROOT / "README.md"
PEOPLE_READ = [
    path for path in tracked() if path.suffix == ".md" and path.parts[0] in ("README.md", "docs", "services")
]
#: Hooks of tests and of the supervisor: nobody sets them.
INTERNAL = {"PODBUS_TEST_RUNTIME", "PODBUS_TEST_JOURNAL", "PODBUS_READY_FD"}


def test_every_make_command_that_documents_name_exists() -> None:
    """A newcomer types them."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for path in (Path("README.md"), *PEOPLE_READ):
        named = {name for span in _code(text(path)) for name in re.findall(r"\bmake ([a-z][a-z-]+)", span)}
        assert named <= targets, path


def test_every_podbus_command_that_documents_name_exists() -> None:
    """Also its flags."""
    commands = _commands(build_parser())
    for path in (Path("README.md"), *PEOPLE_READ):
        for span in _code(text(path)):
            for name, rest in re.findall(r"(?<![\w/.-])podbus ([a-z][a-z-]*)\b([^\n#|;)]*)", span):
                assert name in commands, f"{path}: podbus {name}"
                flags = set(re.findall(r"(?<!\S)(--[a-z-]+)", rest))
                assert flags <= commands[name] | {"--help"}, f"{path}: podbus {name} {rest}"


def test_every_command_is_documented() -> None:
    """In the command's page."""
    page = (ROOT / "docs/cli.md").read_text()
    assert [name for name in _commands(build_parser()) if f"podbus {name}" not in page] == []


def _variables_in_code() -> set[str]:
    used = set()
    for path in python_files(*CODE):
        for node in ast.walk(ast.parse(text(path))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                used |= set(re.findall(r"^PODBUS_[A-Z_]+[A-Z]$", node.value))
    return used


def test_every_variable_is_known() -> None:
    """An unknown one is warned of: what code and scripts read must not be."""
    scripts = [path for path in tracked() if path.parts[0] == "deploy" or path.name == "Makefile"]
    in_scripts = {name for path in scripts for name in re.findall(r"\$\{?(PODBUS_[A-Z_]+)", text(path))}
    used = {name for name in _variables_in_code() | in_scripts if not name.startswith("PODBUS_TEST_")}
    assert used == VARIABLES


def test_every_variable_is_documented() -> None:
    """In the settings' page, and in the operator's compose file where it can be set there."""
    used = _variables_in_code()
    page = (ROOT / "docs/settings.md").read_text()
    assert used - INTERNAL
    assert {name for name in used - INTERNAL if f"`{name}`" not in page} == set()


def test_every_field_of_the_configuration_file_is_documented() -> None:
    """In the settings' page."""
    page = (ROOT / "docs/settings.md").read_text()
    assert [name for place in CONFIG_FIELDS if (name := ".".join(place)) not in page] == []


def test_every_subject_is_documented() -> None:
    """In the table for people and in the AsyncAPI document for tools."""
    for name in ("docs/contracts/subjects.md", "docs/contracts/asyncapi.yaml"):
        page = (ROOT / name).read_text()
        for bucket in BUCKETS:
            assert bucket.name in page, name
        for key in KEYS:
            assert key.body.__name__ in page, name
        for request in REQUESTS:
            assert f"{request.service}.{request.kind}.{request.what}" in page, name
        for hint in HINTS:
            assert f"{hint.service}.e.{hint.what}" in page, name


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_has_a_page(service: str) -> None:
    """What it owns, and what it must never do."""
    assert len((ROOT / f"services/{service}/README.md").read_text()) > 400


@pytest.mark.parametrize("path", PEOPLE_READ, ids=str)
def test_links_lead_somewhere(path: Path) -> None:
    """Of one document to another in the project."""
    plain = re.sub(r"```.*?```", "", text(path), flags=re.S)
    targets = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", plain) if "://" not in link]
    assert [target for target in targets if target and not (ROOT / path.parent / target).exists()] == []


def test_decisions_are_numbered_without_a_gap() -> None:
    """And each says what every decision says."""
    found = sorted(path for path in tracked() if path.parts[:2] == ("docs", "adr") and path.name != "README.md")
    assert [int(path.name[:4]) for path in found] == list(range(1, len(found) + 1))
    for path in found:
        page = text(path).lower()
        assert [word for word in ("status", "date", "context", "decision", "consequences") if word not in page] == []


def _code(page: str) -> list[str]:
    """What is set as code: fenced blocks and spans."""
    blocks = re.findall(r"```.*?\n(.*?)```", page, re.S)
    return [*blocks, *re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page, flags=re.S))]


def _commands(parser: argparse.ArgumentParser) -> dict[str, set[str]]:
    """Name -> its long flags; `db` stands for all below it."""
    found: dict[str, set[str]] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                below = _commands(command)
                found[name] = {flag for own in command._actions for flag in own.option_strings}
                found[name] |= set().union(*below.values()) if below else set()
    return found
