"""Creating a container under a name that is its fence: two creators of one attempt can't both succeed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

from services.podworker.adapters.docker_translate import Observed, conflicting_id, observed
from services.podworker.core.model import RuntimeContainer
from services.podworker.ports import RuntimeRefused
from shared.kube import names

if TYPE_CHECKING:
    from docker import APIClient

_log = logging.getLogger("podbus.podworker.docker_names")

REMOVAL_SECONDS = 5.0
"""How long the name of a container that is being removed is waited for."""


def create(
    client: APIClient, payload: dict[str, Any], name: str, instance: str, is_same: Callable[[Observed], bool]
) -> str:
    """Create the container; its id. Raises docker.errors.APIError with the engine's refusal, or
    RuntimeRefused.

    When the name is taken: this instance's container is adopted if `is_same` and it hasn't ended; one that
    isn't running is removed and the create tried again; a foreign one is left alone and the name gets a
    suffix of this instance (dockershim appends a random one), so that the name stays a fence.
    """
    from docker.errors import APIError

    suffixed = f"{name}_{blake2b(instance.encode(), digest_size=4).hexdigest()}"
    deadline = time.monotonic() + REMOVAL_SECONDS
    while True:
        try:
            created: dict[str, Any] = client.create_container_from_config(payload, name)  # type: ignore[no-untyped-call]
            return str(created["Id"])
        except APIError as error:
            holder = conflicting_id(error.explanation or "") if error.status_code == 409 else None
            if holder is None:
                raise
            who, seen = _holder(client, holder, instance)
            if who == "foreign":
                if name == suffixed:
                    raise
                _log.warning("name=%s is held by another agent's container %s: using %s", name, holder, suffixed)
                name = suffixed
                continue
            if seen is not None:
                if adopted := _adopted(seen, is_same, holder):
                    return adopted
                if time.monotonic() > deadline:
                    raise
                _log.info("name=%s is held by the dead container %s: removing it", name, holder)
                remove(client, holder)
        time.sleep(0.02)


def _adopted(seen: Observed, is_same: Callable[[Observed], bool], holder: str) -> str | None:
    """The holder's id when it can be used as it is; None when it is dead and may go. A live one that differs,
    or an attempt that has run already, means that the caller's picture is old: it must look again."""
    fact = seen.fact
    if not isinstance(fact, RuntimeContainer):
        return holder if is_same(seen) else None
    if is_same(seen) and fact.state in ("created", "running"):
        return holder
    if fact.state == "running" or (is_same(seen) and fact.state == "exited"):
        raise RuntimeRefused("CreateContainerError", f"container {holder} of this attempt is there already")
    return None


def _holder(
    client: APIClient, container_id: str, instance: str
) -> tuple[Literal["gone", "foreign", "ours"], Observed | None]:
    """Whose container it is, and its facts when it is this instance's."""
    from docker.errors import NotFound

    try:
        inspect = client.inspect_container(container_id)
    except NotFound:
        return "gone", None
    seen = observed(inspect, None)
    if seen is None or seen.labels.get(names.LABEL_INSTANCE) != instance:
        return "foreign", None
    return "ours", seen


def remove(client: APIClient, container_id: str) -> None:
    """Force, with its anonymous volumes. Gone, or being removed by somebody else, is success."""
    from docker.errors import APIError

    try:
        client.remove_container(container_id, force=True, v=True)
    except APIError as error:
        if error.status_code not in (404, 409):
            raise
