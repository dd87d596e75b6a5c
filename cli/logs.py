"""`podbus logs`: a container's log from the node's API."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from cli.client import ClientError, client_of
from cli.console import complain
from cli.get import DEFAULT_NAMESPACE, NotFound, find_pod, list_pods
from shared.kube.duration import DurationError, parse_seconds

ALL_LINES = -1
"""kubectl's word for no bound."""
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def logs(arguments: argparse.Namespace) -> int:
    """The command."""
    try:
        query = log_query(arguments)
        client = client_of(arguments.data)
        pod = find_pod(list_pods(client), arguments.namespace or DEFAULT_NAMESPACE, arguments.pod)
        container = container_of(pod, arguments.container)
        meta = pod["metadata"]
        path = f"/containerLogs/{meta['namespace']}/{meta['name']}/{container}"
        for part in client.stream(path, query, timeout=None if arguments.follow else 60.0):
            _write(part)
    except (ClientError, NotFound, ValueError) as error:
        complain([str(error)])
        return 1
    return 0


def log_query(arguments: argparse.Namespace) -> dict[str, str]:
    """The API's parameters. Raises ValueError for a wrong --tail or --since."""
    query: dict[str, str] = {}
    for flag in ("follow", "previous", "timestamps"):
        if getattr(arguments, flag):
            query[flag] = "true"
    if arguments.tail is not None:
        if arguments.tail < ALL_LINES:
            raise ValueError(f"--tail: must be a number of lines, or -1 for all, got {arguments.tail}")
        if arguments.tail > ALL_LINES:
            query["tailLines"] = str(arguments.tail)
    if arguments.since:
        try:
            seconds = parse_seconds(arguments.since)
        except DurationError as error:
            raise ValueError(f"--since: {error}") from error
        if seconds <= 0:
            raise ValueError(f"--since: must be greater than 0, got {arguments.since}")
        query["sinceSeconds"] = str(-int(-seconds // 1))
    return query


def container_of(pod: dict[str, Any], asked: str | None) -> str:
    """The container that is meant: the asked one, the pod's default, else its first (said). Raises NotFound."""
    spec = pod.get("spec") or {}
    kinds = ("initContainers", "containers", "ephemeralContainers")
    names = [container["name"] for kind in kinds for container in spec.get(kind) or []]
    if asked:
        if asked not in names:
            raise NotFound(
                f"container {asked} is not valid for pod {pod['metadata']['name']}, it has {', '.join(names)}"
            )
        return asked
    annotated = (pod["metadata"].get("annotations") or {}).get(_DEFAULT_CONTAINER)
    if annotated in names:
        return str(annotated)
    first: str = spec["containers"][0]["name"]
    if len(names) > 1:
        sys.stderr.write(f'Defaulted container "{first}" out of: {", ".join(names)}\n')
    return first


def _write(data: bytes) -> None:
    sys.stdout.flush()
    while data:
        data = data[os.write(1, data) :]
