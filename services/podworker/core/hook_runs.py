"""Puts hooks into a plan, with the address that an httpGet goes to."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from services.podworker.core.plan import Draft, HookRun
from shared.kube.pod import Handler

_LOOPBACK = "127.0.0.1"


def add_hook(
    draft: Draft,
    container_id: str,
    name: str,
    kind: Literal["postStart", "preStop"],
    handler: Handler,
    *,
    until: float | None = None,
) -> None:
    """The hook should be under way. A port given by name is a number already."""
    run = HookRun(container_id=container_id, name=name, kind=kind, handler=_with_host(draft, handler), until=until)
    draft.hooks.append(run)
    draft.note(f"The {kind} hook of container {name} is under way")


def _with_host(draft: Draft, handler: Handler) -> Handler:
    action = handler.http_get
    if action is None or action.host:
        return handler
    return replace(handler, http_get=replace(action, host=_pod_address(draft)))


def _pod_address(draft: Draft) -> str:
    """Of the sandbox that is ready now; of a pod on the node's network, the node's or the loopback's."""
    known = draft.memory.ips
    shown = next((sandbox.ips for sandbox in draft.runtime.sandboxes if sandbox.ready and sandbox.ips), ())
    if shown:
        return known[0] if known and known[0] in shown else shown[0]
    return known[0] if known else _LOOPBACK
