"""Objects as YAML in kubectl's form: sorted keys, texts of several lines as blocks."""

from __future__ import annotations

from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Its own class, so that the representer doesn't change everybody's."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def to_yaml(value: Any) -> str:
    """`value`: what JSON can hold."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=1 << 20)
    return text
