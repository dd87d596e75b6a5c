"""Extended resources of a node as its operator lists them: which devices, or ids of a driver, stand for one of each.

`example.com/fuse=/dev/fuse*10 example.com/tty=/dev/ttyS0,/dev/ttyS1 nvidia.com/gpu=nvidia:0,nvidia:1`: a unit is a path
of a device or `driver:id`, `*N` lets N containers share it.
"""

from __future__ import annotations

import re

from shared.kube.validation_names import qualified_name_errors

_UNIT = re.compile(r"(?P<unit>/dev/[^\s,*:]+|[A-Za-z0-9_.-]+:[^\s,*]+)(?:\*(?P<shares>[1-9][0-9]{0,3}))?")

Devices = dict[str, tuple[str, ...]]
"""Units by resource; one that is shared stands there as often as it may be given."""


def parse_devices(text: str) -> tuple[Devices, list[str]]:
    """The devices, and what is wrong with the text."""
    found: Devices = {}
    problems: list[str] = []
    for word in text.split():
        name, equals, listed = word.partition("=")
        matches = [_UNIT.fullmatch(one) for one in listed.split(",")]
        if not equals or "/" not in name or qualified_name_errors(name) or _is_native(name):
            problems.append(f"{name!r} is not the name of an extended resource, such as example.com/fuse")
        elif name in found:
            problems.append(f"{name} is there twice")
        elif not all(matches):
            problems.append(f"{name}: {listed!r} is no list of /dev/... or driver:id, each with *N where it is shared")
        else:
            found[name] = tuple(
                match["unit"] for match in matches if match is not None for _ in range(int(match["shares"] or 1))
            )
    return found, problems


def _is_native(name: str) -> bool:
    domain = name.partition("/")[0]
    return domain == "kubernetes.io" or domain.endswith(".kubernetes.io")


def driver_and_id(unit: str) -> tuple[str, str] | None:
    """Of a unit that isn't a path."""
    driver, _, device = unit.partition(":")
    return None if unit.startswith("/") else (driver, device)
