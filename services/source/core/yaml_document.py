"""YAML text to JSON-like values with Kubernetes' rules, and the line of every field.

The text is cut at `---` lines first (a document marker is one wherever it stands), so that a document that
isn't YAML leaves the others of its file readable. libyaml builds the node tree when PyYAML has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from services.source.core.field_errors import quote
from services.source.core.positions import PathStep
from services.source.core.yaml_scalars import ScalarError, key_text, plain_scalar, tagged_scalar

MAX_DEPTH = 100
#: Values of one document after its aliases are expanded: a bound for alias bombs.
MAX_VALUES = 300_000

_PLAIN = "plain"
_TAG_PREFIX = "tag:yaml.org,2002:"
_STRING = _TAG_PREFIX + "str"
_MAPPING = _TAG_PREFIX + "map"
_SEQUENCE = _TAG_PREFIX + "seq"
_MARKER = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_ONLY_DIRECTIVES = re.compile(r"(?:[ \t]*(?:#[^\n]*|%[^\n]*)?(?:\r?\n|\Z))*")
_LEADING_TAB = re.compile(r"[ ]*\t")


@dataclass(frozen=True, slots=True)
class YamlError:
    """A fault in the text, at a line of it."""

    line: int
    message: str
    hint: str = ""


class _Fault(Exception):
    def __init__(self, node: yaml.Node, message: str) -> None:
        super().__init__(message)
        self.node = node
        self.message = message


_Base: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Composer(_Base):  # type: ignore[misc]
    """Composes nodes without resolving plain scalars: this module knows Kubernetes' rules, PyYAML doesn't."""

    def resolve(self, kind: type[yaml.Node], value: object, implicit: object) -> str:
        """The tag of an untagged node."""
        if kind is yaml.ScalarNode:
            return _PLAIN if isinstance(implicit, tuple) and implicit[0] else _STRING
        return _MAPPING if kind is yaml.MappingNode else _SEQUENCE


class YamlPosition:
    """Where a node stands; children are looked up when asked for."""

    def __init__(self, node: yaml.Node, line: int, offset: int) -> None:
        self._node = node
        self._offset = offset
        self.line = line

    def child(self, step: PathStep) -> YamlPosition | None:
        """The entry or item; merged entries are found where they are written."""
        node = self._node
        if isinstance(node, yaml.SequenceNode):
            if isinstance(step, int) and step < len(node.value):
                return self._at(node.value[step], node.value[step])
            return None
        if not isinstance(node, yaml.MappingNode):
            return None
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if _is_merge(key):
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
            elif isinstance(key, yaml.ScalarNode) and _same_key(key, step):
                return self._at(key, value)
        for source in merged:
            found = YamlPosition(source, self.line, self._offset).child(step)
            if found is not None:
                return found
        return None

    def _at(self, mark: yaml.Node, node: yaml.Node) -> YamlPosition:
        return YamlPosition(node, mark.start_mark.line + self._offset, self._offset)


def read_yaml(text: str) -> Iterator[tuple[object, YamlPosition] | YamlError]:
    """Every document that isn't empty, with its positions, or the fault that keeps it from being read."""
    for chunk, offset in _chunks(text):
        if not chunk.strip():
            continue
        loader = _Composer(chunk)
        try:
            yield from _documents(loader, offset)
        except yaml.MarkedYAMLError as error:
            yield _syntax_error(error, chunk, offset)
        except yaml.reader.ReaderError as error:
            line = chunk.count("\n", 0, error.position) + offset
            yield YamlError(line, f"not valid YAML: {error.reason}")
        except (yaml.YAMLError, RecursionError) as error:
            yield YamlError(offset, f"not valid YAML: {type(error).__name__}: {error}")
        finally:
            loader.dispose()


def _documents(loader: _Composer, offset: int) -> Iterator[tuple[object, YamlPosition] | YamlError]:
    while loader.check_node():
        node = loader.get_node()
        try:
            value = _Builder().build(node, 0)
        except _Fault as fault:
            line = fault.node.start_mark.line + offset
            yield YamlError(line, fault.message.replace("\0", str(offset)))
            continue
        except _DuplicateKey as fault:
            yield YamlError(
                fault.line + offset,
                f"duplicate key {quote(fault.key)}: it is already on line {fault.first + offset}",
            )
            continue
        if value is not None:
            yield value, YamlPosition(node, node.start_mark.line + offset, offset)


def _chunks(text: str) -> Iterator[tuple[str, int]]:
    """Pieces of the text that hold whole documents, with the number of the line each begins at."""
    starts = [match.start() for match in _MARKER.finditer(text)]
    begin, line = 0, 1
    for start in starts:
        piece = text[begin:start]
        # Directives (%YAML) belong to the marker after them.
        if piece and "%" in piece and _ONLY_DIRECTIVES.fullmatch(piece):
            continue
        if piece:
            yield piece, line
        line += piece.count("\n")
        begin = start
    yield text[begin:], line


def _syntax_error(error: yaml.MarkedYAMLError, chunk: str, offset: int) -> YamlError:
    mark = error.problem_mark or error.context_mark
    line = mark.line if mark else 0
    # libyaml tells the place where it noticed; at the end of the text that is one line past the last.
    lines = chunk.split("\n")
    line = min(line, max(len(lines) - 1, 0))
    parts = [part for part in (error.context, error.problem) if part]
    message = "not valid YAML: " + ", ".join(parts)
    hint = ""
    for number in (line, line - 1):
        if 0 <= number < len(lines) and _LEADING_TAB.match(lines[number]):
            line = number
            hint = "the line is indented with a tab; YAML indents with spaces only"
            break
    return YamlError(line + offset, message, hint)


class _DuplicateKey(Exception):
    def __init__(self, key: str, line: int, first: int) -> None:
        super().__init__(key)
        self.key, self.line, self.first = key, line, first


class _Builder:
    """Turns one document's node tree into dicts, lists and scalars."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values = 0

    def build(self, node: yaml.Node, depth: int) -> object:
        self.values += 1
        if self.values > MAX_VALUES:
            raise _Fault(node, f"more than {MAX_VALUES} values in one document (do aliases multiply?)")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if depth >= MAX_DEPTH:
            raise _Fault(node, f"nested more than {MAX_DEPTH} levels deep (does an alias contain itself?)")
        if isinstance(node, yaml.SequenceNode):
            if node.tag != _SEQUENCE:
                raise _Fault(node, f"unknown tag {_short(node.tag)}")
            return [self.build(item, depth + 1) for item in node.value]
        if not isinstance(node, yaml.MappingNode) or node.tag != _MAPPING:
            raise _Fault(node, f"unknown tag {_short(node.tag)}")
        return self._mapping(node, depth)

    def _scalar(self, node: yaml.ScalarNode) -> object:
        tag: str = node.tag
        text: str = node.value
        if tag == _STRING:
            return text
        try:
            if tag == _PLAIN:
                return plain_scalar(text)
            if tag.startswith(_TAG_PREFIX):
                return tagged_scalar(tag[len(_TAG_PREFIX) :], text)
        except ScalarError as error:
            raise _Fault(node, str(error)) from None
        raise _Fault(node, f"unknown tag {_short(tag)}")

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        lines: dict[str, int] = {}
        merges: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                merges.append(value_node)
                continue
            key = self._key(key_node)
            line = key_node.start_mark.line
            if key in lines:
                raise _DuplicateKey(key, line, lines[key])
            lines[key] = line
            found[key] = self.build(value_node, depth + 1)
        for merge in merges:
            for name, value in self._merged(merge, depth).items():
                found.setdefault(name, value)
        return found

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise _Fault(node, "a key must be a string, not a list or an object")
        value = self._scalar(node)
        try:
            return key_text(value)  # type: ignore[arg-type]
        except ScalarError as error:
            raise _Fault(node, str(error)) from None

    def _merged(self, node: yaml.Node, depth: int) -> dict[str, object]:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, object] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise _Fault(source, "map merge (<<) requires a map or a list of maps as the value")
            value = self.build(source, depth + 1)
            if isinstance(value, dict):
                # The earlier source wins.
                merged = {**value, **merged}
        return merged


def _is_merge(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value == "<<" and node.tag in (_PLAIN, _TAG_PREFIX + "merge")


def _same_key(node: yaml.ScalarNode, step: PathStep) -> bool:
    if node.value == step:
        return True
    if node.tag != _PLAIN:
        return False
    try:
        return key_text(plain_scalar(node.value)) == step
    except ScalarError:
        return False


def _short(tag: str) -> str:
    return tag.replace(_TAG_PREFIX, "!!", 1)[:80]
