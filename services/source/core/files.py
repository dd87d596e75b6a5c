"""Which entries of the manifest directory are manifests. Pure on names; reading is an adapter's work."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

EXTENSIONS = (".yaml", ".yml", ".json", ".manifest")
#: What editors, package managers and careful people leave behind.
_LEFTOVERS = (
    ".bak",
    ".orig",
    ".rej",
    ".swp",
    ".swo",
    ".tmp",
    ".old",
    ".rpmsave",
    ".rpmnew",
    ".rpmorig",
    ".ucf-dist",
    ".ucf-old",
)


class EntryKind(StrEnum):
    """What a directory entry is, symbolic links followed."""

    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """An entry that is no manifest, and why."""

    path: str
    reason: str


def skip_reason(name: str, kind: EntryKind = EntryKind.FILE) -> str:
    """Why the entry isn't read as a manifest; "" = it is read. `name` is without its directory."""
    if kind is EntryKind.DIRECTORY:
        return "a directory; only files directly in the manifest directory are read"
    if name.startswith("."):
        return "the name starts with a dot"
    lowered = name.lower()
    if name.endswith("~") or (name.startswith("#") and name.endswith("#")) or name == "4913":
        return "an editor's temporary or backup file"
    extension = _extension(lowered)
    if extension in _LEFTOVERS or extension.startswith(".dpkg-"):
        return f"a leftover copy ({extension})"
    if extension and extension not in EXTENSIONS:
        return f"the extension {extension} is none of {' '.join(EXTENSIONS)}"
    if kind is EntryKind.OTHER:
        return "not a regular file"
    return ""


def _extension(name: str) -> str:
    stem, dot, extension = name.rpartition(".")
    return f".{extension}" if dot and stem else ""
