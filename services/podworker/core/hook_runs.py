"""Puts hooks into a plan, and says what an httpGet hook asks for."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from services.podworker.core.plan import Draft, HookRun
from services.podworker.core.probe_checks import http_headers, http_url
from shared.kube.pod import Container, Handler, HTTPGetAction, HTTPHeader
from shared.kube.version import KUBERNETES_VERSION

USER_AGENT = "kube-lifecycle/" + ".".join(KUBERNETES_VERSION.removeprefix("v").split(".")[:2])
_LOOPBACK = "127.0.0.1"


def add_hook(
    draft: Draft, container_id: str, name: str, kind: Literal["postStart", "preStop"], handler: Handler
) -> None:
    """The hook should be under way. A port given by name is a number already.

    One that only sleeps needs nobody to run it: see `has_slept`.
    """
    draft.note(f"The {kind} hook of container {name} is under way")
    if handler.sleep is not None:
        return
    run = HookRun(container_id=container_id, name=name, kind=kind, handler=_with_host(draft, handler))
    draft.hooks.append(run)


def has_slept(draft: Draft, handler: Handler | None, begun_at: float | None) -> bool:
    """Whether a hook that only sleeps is over; never of another one.

    It's counted from a stored instant, so it ends in time whoever owns the pod by then.
    """
    if handler is None or handler.sleep is None:
        return False
    due = (draft.now if begun_at is None else begun_at) + handler.sleep.seconds
    if draft.now < due:
        draft.wake(due)
    return draft.now >= due


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


def http_request(run: HookRun, action: HTTPGetAction) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The URL and the headers. Raises ValueError: no such port."""
    url = http_url(action, Container(name=run.name), action.host)
    given = action.http_headers
    if not any(header.name.lower() == "user-agent" for header in given):
        given = [*given, HTTPHeader(name="User-Agent", value=USER_AGENT)]
    return url, http_headers(given)
