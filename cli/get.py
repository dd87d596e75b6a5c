"""`podbus get`, and finding the pod that a person means."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from cli.client import Client, ClientError, client_of
from cli.console import complain
from cli.tables import node_table, pod_table

DEFAULT_NAMESPACE = "default"
_STATIC = ("file", "http")
_CONFIG_SOURCE = "kubernetes.io/config.source"


class NotFound(Exception):
    """The text is for people."""


def get(arguments: argparse.Namespace) -> int:
    """The command."""
    try:
        client = client_of(arguments.data)
        if arguments.kind in ("node", "nodes", "no"):
            return _get_node(client, arguments)
        return _get_pods(client, arguments)
    except (ClientError, NotFound) as error:
        complain([str(error)])
        return 1


def _get_pods(client: Client, arguments: argparse.Namespace) -> int:
    pods = list_pods(client)
    namespace = arguments.namespace or DEFAULT_NAMESPACE
    if arguments.names:
        shown = [find_pod(pods, namespace, name) for name in arguments.names]
    else:
        shown = [pod for pod in pods if arguments.all_namespaces or pod["metadata"].get("namespace") == namespace]
        shown.sort(key=lambda pod: (pod["metadata"].get("namespace", ""), pod["metadata"]["name"]))
    if arguments.output in ("json", "yaml"):
        _print_objects([{"apiVersion": "v1", "kind": "Pod", **pod} for pod in shown], arguments)
        return 0
    if not shown:
        place = "" if arguments.all_namespaces else f" in {namespace} namespace"
        sys.stderr.write(f"No resources found{place}{'' if arguments.all_namespaces else '.'}\n")
        return 0
    text = pod_table(
        shown,
        time.time(),
        is_wide=arguments.output == "wide",
        has_namespaces=arguments.all_namespaces,
    )
    sys.stdout.write(text)
    return 0


def _get_node(client: Client, arguments: argparse.Namespace) -> int:
    node = client.get("/podbus/node")
    name = node["metadata"]["name"]
    for asked in arguments.names:
        if asked != name:
            raise NotFound(f'nodes "{asked}" not found: this node is {name}')
    if arguments.output in ("json", "yaml"):
        _print_objects([{"apiVersion": "v1", "kind": "Node", **node}], arguments)
    else:
        sys.stdout.write(node_table([node], time.time(), is_wide=arguments.output == "wide"))
    _tell_troubles(client)
    return 0


def _tell_troubles(client: Client) -> None:
    """What is wrong with the node and has no place in its object; apart from the output, which programs may read."""
    sys.stdout.flush()
    for trouble in client.get("/podbus").get("troubles") or ():
        sys.stderr.write(f"trouble: {trouble}\n")


def _print_objects(objects: Sequence[dict[str, Any]], arguments: argparse.Namespace) -> None:
    """As kubectl: one object that was named by itself, else a List."""
    shown: Any = (
        objects[0]
        if len(arguments.names) == 1
        else {"apiVersion": "v1", "items": list(objects), "kind": "List", "metadata": {"resourceVersion": ""}}
    )
    if arguments.output == "json":
        print(json.dumps(shown, indent=4, sort_keys=True, ensure_ascii=False))
        return
    from cli.yaml_text import to_yaml

    sys.stdout.write(to_yaml(shown))


def list_pods(client: Client) -> list[dict[str, Any]]:
    """All pods of the node, as v1.Pod. Raises ClientError."""
    return list(client.get("/pods").get("items") or [])


def find_pod(pods: Sequence[dict[str, Any]], namespace: str, name: str) -> dict[str, Any]:
    """The pod with this name, or the only static pod whose manifest calls it so (its name ends with the node's).

    Raises NotFound.
    """
    here = [pod for pod in pods if pod["metadata"].get("namespace") == namespace]
    for pod in here:
        if pod["metadata"]["name"] == name:
            return pod
    short = [pod for pod in here if short_name(pod) == name]
    if len(short) == 1:
        return short[0]
    if short:
        raise NotFound(f'pods "{name}" is not unique: {", ".join(sorted(p["metadata"]["name"] for p in short))}')
    elsewhere = {pod["metadata"].get("namespace") for pod in pods if name in (pod["metadata"]["name"], short_name(pod))}
    hint = f" in namespace {namespace}; there is one in {', '.join(sorted(map(str, elsewhere)))}" if elsewhere else ""
    raise NotFound(f'pods "{name}" not found{hint}')


def short_name(pod: dict[str, Any]) -> str:
    """What a static pod's manifest calls it; of another pod its name."""
    meta = pod["metadata"]
    name: str = meta["name"]
    node = (pod.get("spec") or {}).get("nodeName") or ""
    if (meta.get("annotations") or {}).get(_CONFIG_SOURCE) in _STATIC and node:
        return name.removesuffix(f"-{node}")
    return name
