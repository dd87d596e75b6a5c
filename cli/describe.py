"""`podbus describe pod NAME`: the pod, the last words of what crashed, and its events."""

from __future__ import annotations

import argparse
import sys
import time

from cli.client import ClientError, client_of
from cli.console import complain
from cli.crash_logs import last_words
from cli.describe_text import pod_text
from cli.get import DEFAULT_NAMESPACE, NotFound, find_pod, list_pods

_MOST_EVENTS = "500"


def describe(arguments: argparse.Namespace) -> int:
    """The command."""
    try:
        client = client_of(arguments.data)
        pods = list_pods(client)
        texts = []
        for name in arguments.names:
            pod = find_pod(pods, arguments.namespace or DEFAULT_NAMESPACE, name)
            events = None
            try:
                query = {"uid": str(pod["metadata"].get("uid", "")), "limit": _MOST_EVENTS}
                events = client.get("/podbus/events", query)["events"]
            except ClientError as error:
                complain([f"events: {error}"])
            texts.append(pod_text(pod, events, time.time(), last_words(client, pod)))
    except (ClientError, NotFound) as error:
        complain([str(error)])
        return 1
    sys.stdout.write("\n\n".join(texts))
    return 0
