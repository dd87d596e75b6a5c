"""docs/settings.md: every setting with its effect, form and default, from the docstrings of the settings classes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docstrings import field_texts

from shared.contracts.docs import markdown_table
from shared.runtime.config import KubeletConfig, config_document
from shared.runtime.config_names import AS_IT_IS, REFUSED, WITHOUT_EFFECT

_DEFAULT = re.compile(r"\s*Default: (.*?)\.?$")
_SPECIAL = {"maxParallelImagePulls": "1", "staticPodPath": "/etc/podbus/manifests"}
"""Where the effective document doesn't show the default as a person would write it."""


def settings_markdown(root: Path) -> str:
    texts = field_texts([root / "shared/runtime/settings.py", root / "shared/runtime/config.py"])
    return "\n\n".join(
        [
            "A flag wins over its variable, a variable over the configuration file. Every wrong value is told at once,"
            " with the setting's name, and the process ends with code 78. `podbus up` reads the settings once and hands"
            " them to all services; in containers each service reads the same variables.",
            "## Variables and flags",
            _variables(texts["Settings"]),
            "`podbus COMMAND --data DIR` names the node that a command speaks of; see [cli.md](cli.md).",
            "## The configuration file",
            "`--config FILE` or `PODBUS_CONFIG`: a `KubeletConfiguration` (`kubelet.config.k8s.io/v1beta1`), YAML or"
            " JSON. An unknown key is warned of with the nearest known one; a wrong value says file, line and key."
            " Durations are written as `20s` or `1m30s`, quantities as `10Mi` or `500m`.",
            "`--config-dir DIR` or `PODBUS_CONFIG_DIR`: drop-ins. Files whose names end in `.conf`, those of"
            " directories below it too, are laid over the file in lexical order: objects are merged key by key, lists"
            " and all else are replaced, `null` takes a key away. Each says apiVersion and kind. `podbus up` has the"
            " kubelet's flags ([cli.md](cli.md)) for many keys; a flag wins over a later drop-in, that over an"
            " earlier one, that over the file. `--feature-gates` adds to the files' gates; any other flag replaces what"
            " they say.",
            "Each key of Kubernetes 1.36 either has an effect, is refused with a reason, or is accepted without an"
            " effect.",
            _file(texts["KubeletConfig"]),
            "Besides, `serializeImagePulls` (see maxParallelImagePulls) and `mergeDefaultEvictionSettings` (true: the"
            " defaults of evictionHard stay where the file names other signals) are read.",
            "### Keys that are refused",
            "Set to anything but nothing or what is accepted, the process ends: ignored, the node would do other than"
            " it was told.",
            markdown_table(
                ("key", "accepted", "why nothing else"),
                [
                    (f"`{key}`", ", ".join(f"`{_inline(one)}`" for one in refused.accepted), refused.why)
                    for key, refused in sorted(REFUSED.items())
                ],
            ),
            "### Keys without an effect",
            "Warned of where they are set, unless to nothing or to what podbus does anyway ("
            + ", ".join(f"`{_assignment(key, values[0])}`" for key, values in sorted(AS_IT_IS.items()))
            + "). A value that a kubelet refuses is refused.",
            markdown_table(("key", "instead"), [(f"`{key}`", why) for key, why in sorted(WITHOUT_EFFECT.items())]),
            "## For development and tests",
            markdown_table(
                ("variable", "effect"),
                [
                    ("`PODBUS_VENV`", "the virtual environment that the scripts below deploy/ use; default `.venv`"),
                    (
                        "`PODBUS_CACHE`",
                        "where deploy/ keeps wheels and a debootstrapped base; default `/var/cache/podbus`",
                    ),
                    ("`PODBUS_NO_PULL`", "1: deploy/images/build.sh asks no registry"),
                    ("`PODBUS_DOCKERD_LOG`", "the log of a dockerd that `make setup` starts"),
                    (
                        "`PODBUS_READY_FD`",
                        "a descriptor on which a service tells that it is ready; the supervisor sets it",
                    ),
                    (
                        "`PODBUS_TEST_RUNTIME`",
                        "module:factory of a runtime instead of Docker Engine, for the chaos test",
                    ),
                    ("`PODBUS_TEST_JOURNAL`", "a file where podworker notes who handled what, for the chaos test"),
                    ("`PODBUS_TEST_ENGINE`", "set by the tests' own model engine"),
                ],
            ),
        ]
    )


def _variables(texts: dict[str, str]) -> str:
    rows = []
    for text in texts.values():
        names, colon, effect = text.partition(": ")
        if not colon or not names.split(", ")[0].isupper():
            continue
        default = _DEFAULT.search(effect)
        variable, *others = names.split(", ")
        flag = next((f"`{name}`" for name in others if name.startswith("--")), "")
        key = next((f"`{name}`" for name in others if not name.startswith("--")), "")
        value = default[1] if default else ""
        rows.append((f"`{variable}`", flag, key, _capital(_DEFAULT.sub("", effect)), value))
    return markdown_table(("variable", "flag", "key in the file", "effect", "default"), rows)


def _file(texts: dict[str, str]) -> str:
    document = config_document(KubeletConfig())
    rows = []
    for field, text in texts.items():
        key, _, effect = text.partition(": ")
        default = _SPECIAL.get(key) or _plain(_at(document, key))
        rows.append((f"`{key}`", _capital(effect), _form(field), default))
    return markdown_table(("key", "effect", "form", "default"), rows)


def _form(field: str) -> str:
    value = getattr(KubeletConfig(), field)
    if field.endswith("_seconds"):
        return "duration"
    if field.endswith("_bytes"):
        return "quantity"
    if field.endswith(("_file", "_path", "_conf")):
        return "path"
    if field.endswith("address"):
        return "IP address"
    if field == "allowed_unsafe_sysctls":
        return "list of names"
    if field.endswith("_taints"):
        return "list of taints"
    return {int: "whole number", dict: "map", tuple: "list of IP addresses"}.get(type(value), "text")


def _at(document: Any, key: str) -> Any:
    for part in key.split("."):
        document = document[part]
    return document


def _inline(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict | list) else _plain(value)


def _assignment(key: str, value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(_assignment(f"{key}.{inner}", below) for inner, below in value.items())
    return f"{key}: {_plain(value)}"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plain(inner)}" for key, inner in value.items()) or "{}"
    if isinstance(value, bool):
        return str(value).lower()
    return "[]" if value == [] else '""' if value == "" else str(value)


def _capital(text: str) -> str:
    return text.removesuffix(".")
