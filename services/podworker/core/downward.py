"""What a pod may know of itself: fieldRef and resourceFieldRef, in variables and in files (lifecycle 7.2, 7.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from services.podworker.core.config_objects import ConfigError
from services.podworker.core.node_facts import NodeFacts
from services.podworker.core.pod_resources import bounded
from shared.kube.pod import Container, Pod
from shared.kube.quantity import Quantity
from shared.kube.volumes import ResourceFieldSelector

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]", re.DOTALL)
_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    """Known once the sandbox runs."""

    host_ip: str = ""
    pod_ips: tuple[str, ...] = ()


def field_value(pod: Pod, path: str, addresses: Addresses) -> str:
    """A field for a variable. A missing label or annotation is "". Raises ConfigError for a field that isn't served."""
    match = _SUBSCRIPT.fullmatch(path)
    if match is not None:
        values = pod.metadata.labels if match[1] == "labels" else pod.metadata.annotations
        return values.get(match[2], "")
    meta, ips = pod.metadata, addresses.pod_ips
    known = {
        "metadata.name": meta.name,
        "metadata.namespace": meta.namespace,
        "metadata.uid": meta.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": addresses.host_ip,
        "status.hostIPs": addresses.host_ip,
        "status.podIP": ips[0] if ips else "",
        "status.podIPs": ",".join(ips),
    }
    if path not in known:
        raise ConfigError(f"unsupported fieldPath: {path}")
    return known[path]


def field_file(pod: Pod, path: str) -> str:
    """A field for a file: labels and annotations as a whole are one `key="value"` a line."""
    if path == "metadata.labels":
        return map_file(pod.metadata.labels)
    if path == "metadata.annotations":
        return map_file(pod.metadata.annotations)
    return field_value(pod, path, Addresses())


def map_file(values: Mapping[str, str]) -> str:
    """Sorted, the values quoted as Go does, without a newline at the end."""
    return "\n".join(f"{key}={go_quoted(values[key])}" for key in sorted(values))


def go_quoted(text: str) -> str:
    """strconv.Quote."""
    return '"' + "".join(_go_escaped(c) for c in text) + '"'


def _go_escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def resource_value(pod: Pod, container: Container | None, ref: ResourceFieldSelector, node: NodeFacts) -> str:
    """ceil(amount / divisor). A limit that isn't set is what the node can give; a request that isn't is 0.

    `container` is the one that asks; the reference may name another. Raises ConfigError.
    """
    if ref.container_name:
        everyone = (*pod.spec.init_containers, *pod.spec.containers)
        container = next((c for c in everyone if c.name == ref.container_name), None)
    if container is None:
        raise ConfigError(f"container {ref.container_name} not found")
    side, _, name = ref.resource.partition(".")
    resources = bounded(pod, container).resources
    amount = (resources.limits if side == "limits" else resources.requests).get(name)
    if amount is not None:
        quantity = Quantity.parse(str(amount))
    elif side == "limits":
        quantity = _allocatable(name, node)
    else:
        quantity = Quantity(0)
    return str(quantity.divided_by(Quantity.parse(str(ref.divisor))))


def _allocatable(name: str, node: NodeFacts) -> Quantity:
    if name == "cpu":
        return Quantity.from_milli(node.allocatable_cpu_milli)
    if name == "memory":
        return Quantity.from_value(node.allocatable_memory_bytes)
    if name == "ephemeral-storage":
        return Quantity.from_value(node.allocatable_storage_bytes)
    return Quantity(0)
