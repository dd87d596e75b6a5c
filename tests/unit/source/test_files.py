"""Which entries of the manifest directory are manifests (design 7)."""

from __future__ import annotations

import pytest

from services.source.core.files import EntryKind, skip_reason


@pytest.mark.parametrize(
    "name", ["web.yaml", "web.yml", "web.json", "web.manifest", "web", "WEB.YAML", "web-1", "a.b.yaml"]
)
def test_a_manifest_is_read(name: str) -> None:
    assert skip_reason(name) == ""


@pytest.mark.parametrize(
    ("name", "part"),
    [
        (".web.yaml", "dot"),
        (".web.yaml.swp", "dot"),
        ("..data", "dot"),
        ("web.yaml~", "editor"),
        ("#web.yaml#", "editor"),
        ("4913", "editor"),
        ("web.yaml.bak", "leftover copy (.bak)"),
        ("web.orig", "leftover"),
        ("web.swp", "leftover"),
        ("web.yaml.tmp", "leftover"),
        ("web.yaml.rpmsave", "leftover"),
        ("web.yaml.dpkg-old", "leftover copy (.dpkg-old)"),
        ("web.dpkg-new", "leftover"),
        ("web.txt", "extension .txt is none of .yaml .yml .json .manifest"),
        ("web.v2", "extension .v2"),
    ],
)
def test_what_is_no_manifest_is_skipped_with_its_reason(name: str, part: str) -> None:
    assert part in skip_reason(name)


def test_directories_and_sockets_are_skipped() -> None:
    assert "directory" in skip_reason("web.yaml", EntryKind.DIRECTORY)
    assert "not a regular file" in skip_reason("web.yaml", EntryKind.OTHER)
