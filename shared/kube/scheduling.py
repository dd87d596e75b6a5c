"""The parts of v1.Pod that say which nodes it may run on, frozen."""

from __future__ import annotations

import msgspec


class _Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class NodeSelectorRequirement(_Object, frozen=True, kw_only=True):
    key: str
    operator: str
    """In, NotIn, Exists, DoesNotExist, Gt or Lt."""
    values: list[str] = []


class NodeSelectorTerm(_Object, frozen=True, kw_only=True):
    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(_Object, frozen=True, kw_only=True):
    """One of the terms has to match."""

    node_selector_terms: list[NodeSelectorTerm] = []


class NodeAffinity(_Object, frozen=True, kw_only=True):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(_Object, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None


class Taint(_Object, frozen=True, kw_only=True):
    """Of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(_Object, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    """Equal (the default) or Exists."""
    value: str = ""
    effect: str = ""
    """"" = of every effect."""


class PodOS(_Object, frozen=True, kw_only=True):
    name: str = ""
