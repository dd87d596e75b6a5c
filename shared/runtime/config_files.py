"""What a node is configured with: a file, its drop-ins and flags, each laid over those before it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from shared.runtime.config_values import Wrong

Place = tuple[str, ...]
DROP_IN_SUFFIX = ".conf"


@dataclass(frozen=True)
class Origin:
    """Where a value was said."""

    order: int = 0
    """Of its layer: a later one wins."""
    name: str = ""
    """The file's path, or the flag."""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.name}:{self.line}" if self.line else self.name


@dataclass(frozen=True)
class Layer:
    name: str
    document: Any
    lines: Mapping[Place, int] = field(default_factory=dict)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: objects are merged key by key, null takes a key away, all else (lists too) is replaced."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def merged(layers: Iterable[Layer]) -> tuple[dict[str, Any], dict[Place, Origin]]:
    """The document that all layers make, and who said what last. A layer that isn't an object is left out.

    The first is taken as it is: nothing is there that its nulls could take away."""
    document: dict[str, Any] = {}
    origins: dict[Place, Origin] = {}
    for order, layer in enumerate(layers):
        if isinstance(layer.document, dict):
            document = merge_patch(document, layer.document) if order else dict(layer.document)
            origins |= {place: Origin(order, layer.name, line) for place, line in layer.lines.items()}
    return document, origins


def drop_ins(directory: Path) -> list[Path]:
    """Its files whose names end in .conf, those of directories below it too, in lexical order. Raises OSError."""
    found: list[Path] = []
    with os.scandir(directory) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        if entry.is_dir(follow_symlinks=False):
            found += drop_ins(Path(entry.path))
        elif entry.name.endswith(DROP_IN_SUFFIX) and entry.is_file():
            found.append(Path(entry.path))
    return found


def read_layer(path: Path) -> Layer:
    """YAML or JSON. Raises Wrong with the file and what is wrong with it."""
    try:
        document, lines = _parse(path.read_bytes())
    except OSError as error:
        raise Wrong(f"{path}: {error.strerror}") from error
    except Wrong as error:
        raise Wrong(f"{path}:{error}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise Wrong(f"{path}: {' '.join(str(error).split())}") from error
    return Layer(str(path), document, lines)


def _parse(data: bytes) -> tuple[Any, dict[Place, int]]:
    """The value, and the line of each key. Raises ValueError, yaml.YAMLError, or Wrong with the line."""
    text = data.decode()
    lines: dict[Place, int] = {}
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except ValueError:
            pass  # YAML's own flow form begins like JSON
        else:
            _note_keys(document, (), lines)
            return document, lines
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, lines
        _note_lines(node, (), lines)
        return _with_text_keys(loader.construct_document(node)), lines
    finally:
        loader.dispose()


def _with_text_keys(value: Any) -> Any:
    """As in JSON, which is what Kubernetes makes of it."""
    if isinstance(value, dict):
        return {str(key): _with_text_keys(inner) for key, inner in value.items()}
    return [_with_text_keys(inner) for inner in value] if isinstance(value, list) else value


def _note_lines(node: yaml.Node, place: Place, lines: dict[Place, int]) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        here = (*place, str(key.value))
        line = key.start_mark.line + 1
        if here in lines:
            raise Wrong(f"{line}: {'.'.join(here)}: the key is there twice, first in line {lines[here]}")
        lines[here] = line
        _note_lines(value, here, lines)


def _note_keys(value: Any, place: Place, lines: dict[Place, int]) -> None:
    """JSON's lines aren't known, its keys are."""
    if isinstance(value, dict):
        for key, inner in value.items():
            lines[(*place, key)] = 0
            _note_keys(inner, (*place, key), lines)
