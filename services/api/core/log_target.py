"""Which container's log is meant: by its state, or why there is none yet."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kube.status import PodStatus


@dataclass(frozen=True)
class NoLog:
    """Answered as 400 with this text."""

    text: str


def log_target(status: PodStatus | None, pod: str, container: str, *, previous: bool) -> str | NoLog:
    """The container's id without its runtime's prefix. kubelet 1.36: validateContainerLogStatus."""
    named = f'container "{container}" in pod "{pod}"'
    statuses = [] if status is None else [*status.container_statuses, *status.init_container_statuses]
    found = next((s for s in statuses if s.name == container), None)
    if found is None:
        return NoLog(f"{named} is not available")
    state, last = found.state, found.last_state.terminated
    last_id = last.container_id if last is not None else ""
    if previous:
        return _id(last_id) if last_id else NoLog(f"previous terminated {named} not found")
    if state.running is not None:
        return _id(found.container_id)
    if state.terminated is not None:
        ended_id = state.terminated.container_id or last_id  # "" = the next one never started
        return _id(ended_id) if ended_id else NoLog(f"{named} is terminated")
    if last is not None:
        return _id(last_id) if last_id else NoLog(f"{named} is terminated")
    if state.waiting is not None:
        return NoLog(f"{named} is waiting to start: {_WHY.get(state.waiting.reason, state.waiting.reason)}")
    return NoLog(f"{named} is waiting to start - no logs yet")


def running_container(status: PodStatus | None, container: str) -> str | None:
    """The id of the container's running instance, without its runtime's prefix; None = it doesn't run."""
    statuses = [] if status is None else [*status.container_statuses, *status.init_container_statuses]
    found = next((s for s in statuses if s.name == container and s.state.running is not None), None)
    return _id(found.container_id) if found is not None and found.container_id else None


_WHY = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def _id(text: str) -> str:
    """`docker://4f5e...` -> `4f5e...`"""
    return text.rpartition("://")[2]
