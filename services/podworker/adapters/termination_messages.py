"""What a container left to say as it ended: its message file, or the end of its log (lifecycle 4.4). Calls block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from services.podworker.adapters.docker_translate import Observed
from services.podworker.adapters.pod_files import read_termination_message
from services.podworker.adapters.secret_values import SecretFiles, secret_values
from services.podworker.core.masking import masked
from services.podworker.core.model import RuntimeContainer
from shared.kube import names

if TYPE_CHECKING:
    from docker import APIClient

FALLBACK_LINES = 80
FALLBACK_BYTES = 2048


def with_message(client: APIClient, seen: Observed, inspect: Mapping[str, Any], secret_files: SecretFiles) -> Observed:
    """The observed container with its termination message, once it has run and ended.

    A message file is the container's own word, meant to be shown. A log isn't: the pod's Secrets' values are masked.
    """
    fact = seen.fact
    if not isinstance(fact, RuntimeContainer) or fact.state != "exited" or fact.cannot_run:
        return seen
    message = read_termination_message(seen.termination_file) if seen.termination_file else ""
    policy = seen.labels.get(names.ANNOTATION_TERMINATION_POLICY, "")
    if not message and fact.exit_code != 0 and policy == "FallbackToLogsOnError":
        log = _last_of_log(client, fact.id)
        hidden = secret_values(inspect, secret_files) if log else []
        message = masked(log, hidden).encode()[-FALLBACK_BYTES:].decode(errors="replace")
    if not message:
        return seen
    return msgspec.structs.replace(seen, fact=msgspec.structs.replace(fact, termination_message=message))


def _last_of_log(client: APIClient, container_id: str) -> str:
    from docker.errors import APIError

    try:
        text: bytes = client.logs(container_id, stdout=True, stderr=True, tail=FALLBACK_LINES)
    except APIError:
        return ""
    return text.decode(errors="replace")
