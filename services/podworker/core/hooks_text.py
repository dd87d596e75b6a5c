"""What is told of hooks, in Kubernetes' words (wording of kubelet 1.36).

A hook's output may hold secrets: it's in the container's waiting message at most, never in an event.
"""

from __future__ import annotations

from services.podworker.core.events_text import PodEvent
from services.podworker.core.plan import HookRun


def post_start_failed(container: str) -> PodEvent:
    return PodEvent(type="Warning", reason="FailedPostStartHook", message="PostStartHook failed", container=container)


def pre_stop_failed(container: str) -> PodEvent:
    return PodEvent(type="Warning", reason="FailedPreStopHook", message="PreStopHook failed", container=container)


def pre_stop_late(container: str) -> PodEvent:
    """Not a Kubernetes event: the kubelet only logs it."""
    message = "PreStopHook did not complete in grace period"
    return PodEvent(type="Warning", reason="FailedPreStopHook", message=message, container=container)


def exec_failed(run: HookRun, pod: str, error: str, output: bytes) -> str:
    """`pod` as events_text.full_name writes it."""
    command = run.handler.exec.command if run.handler.exec is not None else []
    shown = _quoted(output.decode(errors="replace"))
    return (
        f'Exec lifecycle hook ([{" ".join(command)}]) for Container "{run.name}" in Pod "{pod}" failed -'
        f" error: {error}, message: {shown}"
    )


def exited_with(run: HookRun, code: int | None) -> str:
    """None: it was killed."""
    command = run.handler.exec.command if run.handler.exec is not None else []
    return f"command '{' '.join(command)}' exited with {137 if code is None else code}: "


def http_failed(run: HookRun, pod: str, error: str) -> str:
    path = run.handler.http_get.path if run.handler.http_get is not None else ""
    return f'HTTP lifecycle hook ({path}) for Container "{run.name}" in Pod "{pod}" failed - error: {error}'


def invalid_handler(run: HookRun, pod: str) -> str:
    """tcpSocket: the API takes it, nothing runs it."""
    return f'Cannot run handler: invalid lifecycle hook for Container "{run.name}" in Pod "{pod}"'


def _quoted(text: str) -> str:
    """As Go's %q, for what is usual."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{plain}"'
