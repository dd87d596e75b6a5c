"""What the status bucket says of the pods and the engine -> what to measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from services.stats.core.cgroup_paths import path_of_parent, pods_cgroup
from services.stats.core.model import ContainerTarget, ImageTarget, PodTarget, SystemTarget, Targets
from shared.contracts.status import PodReport, RuntimeReport
from shared.kube.times import parse_rfc3339

SANDBOX = "POD"
"""The name under which a report lists its sandbox."""


def targets_of(
    pods: Iterable[PodReport],
    runtime: RuntimeReport | None,
    *,
    cgroup_driver: str = "",
    cgroup_root: str = "/",
    allocatable_memory: int | None = None,
    kills: Mapping[str, int] | None = None,
) -> Targets:
    """Targets in the order of `pods`. A driver given here counts more than the engine's report of it;
    without both it is cgroupfs. `kills`: for want of memory, by container id, as the kernel's log has them."""
    driver = cgroup_driver or (runtime.cgroup_driver if runtime is not None else "") or "cgroupfs"
    return Targets(
        pods=tuple(pod_target(report, kills or {}) for report in pods),
        system=(SystemTarget(name="pods", cgroup=pods_cgroup(driver, cgroup_root), memory_limit=allocatable_memory),),
        images=image_target(runtime),
        engine_trouble="" if runtime is None or runtime.healthy else runtime.message or "the engine doesn't answer",
        engine_version="" if runtime is None else runtime.engine_version,
    )


def pod_target(report: PodReport, kills: Mapping[str, int] | None = None) -> PodTarget:
    """One pod as its owner reported it."""
    sandbox = next((one for one in report.containers if one.name == SANDBOX), None)
    return PodTarget(
        uid=report.uid,
        name=report.name,
        namespace=report.namespace,
        start_time=parse_rfc3339(report.status.start_time) if report.status.start_time else None,
        cgroup=path_of_parent(report.cgroup_parent),
        sandbox_id="" if sandbox is None else sandbox.id,
        sandbox_pid=0 if sandbox is None else sandbox.pid,
        sandbox_started_at=0.0 if sandbox is None else sandbox.started_at,
        sandbox_attempt=0 if sandbox is None else sandbox.attempt,
        oom_kills=_oom_kills(report, kills or {}),
        host_network=bool(report.status.host_ip) and report.status.host_ip == report.status.pod_ip,
        containers=tuple(
            ContainerTarget(
                id=one.id,
                name=one.name,
                pid=one.pid,
                started_at=one.started_at,
                image=_image(one.image_id),
                attempt=one.attempt,
            )
            for one in report.containers
            if one.name != SANDBOX
        ),
    )


def image_target(runtime: RuntimeReport | None) -> ImageTarget | None:
    """usedBytes of imageFs is what the images take together, as the newest kubelet's runtimes tell it; kubelet 1.20 on
    Docker told the sum of their sizes, in which shared layers count repeatedly."""
    if runtime is None or not runtime.root_dir:
        return None
    return ImageTarget(
        root_dir=runtime.root_dir,
        used_bytes=runtime.images_bytes,
    )


def _image(image_id: str) -> str:
    """Without its scheme: `sha256:...`, or the name by digest."""
    return image_id.partition("://")[2] or image_id


def _oom_kills(report: PodReport, kills: Mapping[str, int]) -> tuple[tuple[str, str, int], ...]:
    """Of live and ended instances. A main process that was killed counts once where the log has nothing of it."""
    found = {(one.name, one.id): 0 for one in report.containers if one.name != SANDBOX}
    for status in (*report.status.init_container_statuses, *report.status.container_statuses):
        for state in (status.state, status.last_state):
            ended = state.terminated
            if ended is not None:
                found[status.name, ended.container_id.partition("://")[2]] = int(ended.reason == "OOMKilled")
    counted = ((name, id_, max(known, kills.get(id_, 0))) for (name, id_), known in found.items())
    return tuple(one for one in counted if one[2])
