"""Services -> the variables that tell a container of them (kubelet 1.36: envvars.FromServices, getServiceEnvVarMap)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

JsonObject = dict[str, Any]

_MASTER = ("default", "kubernetes")
"""Told to every pod."""


def service_variables(services: Iterable[JsonObject], namespace: str, *, links: bool) -> dict[str, str]:
    """`links`: the pod wants those of its namespace, too (enableServiceLinks)."""
    wanted: dict[str, JsonObject] = {}
    for service in services:
        meta, spec = service.get("metadata") or {}, service.get("spec") or {}
        if spec.get("clusterIP") in (None, "", "None") or not spec.get("ports"):
            continue
        place, name = str(meta.get("namespace")), str(meta.get("name"))
        if links and place == namespace:
            wanted[name] = spec
        elif (place, name) == _MASTER:
            wanted.setdefault(name, spec)
    return {key: value for name in sorted(wanted) for key, value in _of_one(name, wanted[name]).items()}


def _of_one(name: str, spec: JsonObject) -> dict[str, str]:
    word, address, ports = _word(name), str(spec["clusterIP"]), spec["ports"]
    found = {f"{word}_SERVICE_HOST": address, f"{word}_SERVICE_PORT": str(ports[0]["port"])}
    for port in ports:
        if port.get("name"):
            found[f"{word}_SERVICE_PORT_{_word(port['name'])}"] = str(port["port"])
    for index, port in enumerate(ports):
        protocol, number = str(port.get("protocol") or "TCP"), str(port["port"])
        host = f"[{address}]" if ":" in address else address
        url, prefix = f"{protocol.lower()}://{host}:{number}", f"{word}_PORT_{number}_{protocol.upper()}"
        if index == 0:
            found[f"{word}_PORT"] = url
        found |= {
            prefix: url,
            f"{prefix}_PROTO": protocol.lower(),
            f"{prefix}_PORT": number,
            f"{prefix}_ADDR": address,
        }
    return found


def _word(name: str) -> str:
    return name.replace("-", "_").upper()
