"""The Secrets' values that a container got, to be kept out of what it writes where that is told to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from shared.kube import names

SecretFiles = Callable[[str], Sequence[str]]
"""A pod's uid -> what the files of its Secret volumes hold."""


def secret_values(inspect: Mapping[str, Any], secret_files: SecretFiles) -> list[str]:
    """Of the variables that a label names, and of the pod's Secret volumes. `inspect`: the engine's own answer."""
    labels = inspect["Config"].get("Labels") or {}
    return [*_variables(inspect, labels), *secret_files(labels.get(names.LABEL_POD_UID, ""))]


def _variables(inspect: Mapping[str, Any], labels: Mapping[str, str]) -> list[str]:
    given = labels.get(names.LABEL_PRIVATE_VARIABLES, "")
    if not given:
        return []
    private = set(msgspec.json.decode(given, type=list[str]))
    pairs = (entry.partition("=") for entry in inspect["Config"].get("Env") or ())
    return [value for name, _, value in pairs if name in private]
