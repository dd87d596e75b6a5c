"""What a pod is given: its volumes before its containers start, their files kept up to date, and a container's
variables and mounts for each start. Core says what; the ports fetch and make it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass

from services.podworker.core import events_text
from services.podworker.core.config_objects import ConfigError, ConfigObject, Objects
from services.podworker.core.container_config import ContainerInputs
from services.podworker.core.downward import Addresses
from services.podworker.core.environment import EnvInputs, FileKey, environment
from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import PodMemory, RuntimePod
from services.podworker.core.mounts import mount_requests
from services.podworker.core.node_facts import NodeFacts
from services.podworker.core.results import (
    CONTAINER_CREATING,
    CREATE_CONTAINER_CONFIG_ERROR,
    retry_configuration,
)
from services.podworker.core.state import sync_state
from services.podworker.core.volumes import (
    VolumeFault,
    is_files_volume,
    used_volumes,
    volume_path,
    volume_plan,
)
from services.podworker.ports import ConfigObjects, ConfigUnavailable, RuntimeRefused, Volumes
from shared.kube.names import CONFIG_SOURCE
from shared.kube.pod import Container, Pod
from shared.kube.references import SERVICES, ConfigRef, Use, environment_uses, referenced, volume_uses
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.podworker.volumes")

Addressed = Callable[[], Awaitable[tuple[str, ...]]]
"""Asks the engine for the pod's addresses: only when a variable needs them."""


@dataclass
class _Kept:
    """What is known of one pod's volumes between two looks."""

    pod: Pod | None = None
    refreshed_at: float = float("-inf")
    """Seconds since boot."""
    faults: tuple[VolumeFault, ...] = ()
    """Told already."""
    is_down: bool = False


class VolumeKeeper:
    """Of all pods of a worker."""

    def __init__(
        self, volumes: Volumes, configs: ConfigObjects, node: NodeFacts, clock: Clock, *, refresh_seconds: float
    ) -> None:
        """`refresh_seconds`: how often files are compared with their objects; a change is told besides."""
        self._volumes = volumes
        self._configs = configs
        self._node = node
        self._clock = clock
        self._refresh_seconds = refresh_seconds
        self._kept: dict[str, _Kept] = {}
        self._changed: set[str] = set()

    # -- before and at a start --------------------------------------------------------------------------------

    async def set_up(self, pod: Pod) -> tuple[VolumeFault, ...]:
        """Make all volumes of the pod so; what can't be. Quick for a pod without any."""
        used = used_volumes(pod)
        if not used:
            return ()
        wanted = [use for volume in used for use in volume_uses(volume)]
        objects, unknown = await self._fetch(pod, wanted)
        plan = volume_plan(pod, self._node, objects)
        doubtful = {v.name for v in used if unknown.keys() & referenced(volume_uses(v))}
        ready = [setup for setup in plan.setups if setup.name not in doubtful]
        faults = [fault for fault in plan.faults if fault.volume not in doubtful]
        for volume in used:
            reasons = [unknown[ref] for ref in sorted(referenced(volume_uses(volume))) if ref in unknown]
            faults += [VolumeFault(volume.name, reason) for reason in reasons[:1]]
        faults += await self._volumes.set_up(ready)
        kept = self._of(pod)
        kept.pod, kept.refreshed_at, kept.is_down = pod, self._clock.boot_seconds(), False
        return tuple(faults)

    async def for_container(self, pod: Pod, container: Container, addresses: Addressed) -> ContainerInputs:
        """Variables and mounts for a start now; the pod's volumes are set up. Raises RuntimeRefused."""
        try:
            wanted = [*environment_uses(container), *_mounted(pod, container), *_told_of_services(pod)]
            objects, unknown = await self._fetch(pod, wanted)
            for reason in unknown.values():
                raise ConfigError(reason)
            inputs = EnvInputs(
                objects=objects,
                files=await self._env_files(pod, container),
                addresses=await self._addresses(container, addresses),
            )
            variables = environment(pod, container, self._node, inputs)
            requests = mount_requests(pod, container, self._node, variables.variables, objects)
            if not requests:
                return ContainerInputs(variables)
            return ContainerInputs(variables, tuple(await self._volumes.bind(container.name, requests)))
        except (ConfigError, OSError) as error:
            raise RuntimeRefused(CREATE_CONTAINER_CONFIG_ERROR, str(error)) from error

    async def still_usable(self, pod: Pod, faults: Collection[VolumeFault]) -> None:
        """A container may start again on files that can't be refreshed now, but not without. Raises RuntimeRefused."""
        faulty = {fault.volume for fault in faults}
        volumes = [volume for volume in used_volumes(pod) if volume.name in faulty]
        paths = [volume_path(pod, volume, self._node) for volume in volumes if is_files_volume(volume)]
        if len(paths) < len(volumes) or not await self._volumes.are_written(paths):
            raise RuntimeRefused(CONTAINER_CREATING, "; ".join(f"volume {f.volume}: {f.message}" for f in faults))

    # -- while it runs ----------------------------------------------------------------------------------------

    def config_changed(self, uid: str) -> None:
        """An object that the pod refers to has changed, come or gone."""
        self._changed.add(uid)
        if (kept := self._kept.get(uid)) is not None:
            kept.refreshed_at = float("-inf")

    def with_retries(self, memory: PodMemory) -> PodMemory:
        """After such a change what waited for it is tried at once."""
        if memory.uid not in self._changed:
            return memory
        self._changed.discard(memory.uid)
        return retry_configuration(memory)

    async def look_after(self, pod: Pod | None, memory: PodMemory, runtime: RuntimePod) -> list[PodEvent]:
        """At the end of each look: files are kept up to date while the pod runs; once it has ended by itself, and stays
        as a record, its volumes go."""
        if pod is None or memory.termination is not None:
            return []
        if sync_state(memory, runtime) == "finished":
            await self.take_down(pod)
            return []
        if not any(sandbox.ready for sandbox in runtime.sandboxes):
            return []
        return await self.refresh(pod)

    async def refresh(self, pod: Pod) -> list[PodEvent]:
        """Bring the files of a running pod up to date when that is due; a new trouble is told once."""
        if not any(is_files_volume(volume) for volume in used_volumes(pod)):
            return []
        kept = self._of(pod)
        if kept.pod is pod and self._clock.boot_seconds() - kept.refreshed_at < self._refresh_seconds:
            return []
        faults = await self.set_up(pod)
        told, kept.faults = kept.faults, faults
        for fault in faults:
            log.info("volume not refreshed pod=%s/%s volume=%s error=%s", *_name(pod), fault.volume, fault.message)
        return [events_text.mount_failed(f.volume, f.message) for f in faults if f not in told]

    async def take_down(self, pod: Pod) -> None:
        """Of a pod that has ended and stays as a record: nothing reads its volumes any more."""
        kept = self._of(pod)
        if not kept.is_down and used_volumes(pod):
            await self._volumes.tear_down(pod.metadata.uid)
        kept.is_down = True

    def forget(self, uid: str) -> None:
        self._kept.pop(uid, None)
        self._changed.discard(uid)

    # -- inside -----------------------------------------------------------------------------------------------

    def _of(self, pod: Pod) -> _Kept:
        return self._kept.setdefault(pod.metadata.uid, _Kept())

    async def _fetch(self, pod: Pod, wanted: Iterable[Use]) -> tuple[Objects, dict[ConfigRef, str]]:
        """The objects, and why some can't be had now."""
        objects: dict[ConfigRef, ConfigObject | None] = {}
        unknown: dict[ConfigRef, str] = {}
        for ref in sorted(referenced(wanted)):
            try:
                objects[ref] = await self._configs.get(pod.metadata.uid, ref)
            except ConfigUnavailable as error:
                unknown[ref] = str(error)
        return objects, unknown

    async def _addresses(self, container: Container, addresses: Addressed) -> Addresses:
        fields = [v.value_from.field_ref.field_path for v in container.env if v.value_from and v.value_from.field_ref]
        wants_pod = any(field.startswith("status.podIP") for field in fields)
        return Addresses(host_ip=self._node.address, pod_ips=await addresses() if wants_pod else ())

    async def _env_files(self, pod: Pod, container: Container) -> dict[FileKey, str]:
        found: dict[FileKey, str] = {}
        volumes = {volume.name: volume for volume in pod.spec.volumes}
        for variable in container.env:
            ref = variable.value_from.file_key_ref if variable.value_from else None
            if ref is None or (key := FileKey(ref.volume_name, ref.path)) in found or ref.volume_name not in volumes:
                continue
            root = volume_path(pod, volumes[ref.volume_name], self._node)
            text = await self._volumes.read_file(root, ref.path)
            if text is not None:
                found[key] = text
        return found


def _mounted(pod: Pod, container: Container) -> list[Use]:
    """Objects behind sub paths: a missing key is told with the keys that there are."""
    names = {mount.name for mount in container.volume_mounts if mount.sub_path or mount.sub_path_expr}
    return [use for volume in pod.spec.volumes if volume.name in names for use in volume_uses(volume)]


def _told_of_services(pod: Pod) -> list[Use]:
    """Only pods of the API are."""
    is_of_api = pod.metadata.annotations.get(CONFIG_SOURCE) == "api"
    return [Use(SERVICES, False, "environment")] if is_of_api else []


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name
