"""Pod -> what each of its volumes should look like on the node (lifecycle 7.3). Pure: the adapters make it so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from services.podworker.core.config_objects import ConfigError, ConfigObject, Objects, keys_of, not_found
from services.podworker.core.downward import field_file, resource_value
from services.podworker.core.node_facts import NodeFacts, pod_directory
from services.podworker.core.pod_limits import pod_limits
from shared.kube.pod import Container, Pod
from shared.kube.quantity import Quantity
from shared.kube.references import ConfigRef, token_ref
from shared.kube.volumes import (
    DownwardAPIVolumeFile,
    EmptyDirVolumeSource,
    KeyToPath,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
)

_PLUGINS = {
    "empty_dir": "empty-dir",
    "config_map": "configmap",
    "secret": "secret",
    "downward_api": "downward-api",
    "projected": "projected",
}
"""Field -> directory below `volumes`, as the kubelet names them."""


class ProjectedFile(msgspec.Struct, frozen=True):
    """One file of a volume of files. Its content may be a secret: it is in no repr."""

    path: str
    content: bytes
    mode: int

    def __repr__(self) -> str:
        return f"ProjectedFile({self.path!r}, mode={self.mode:o})"


class DirectoryVolume(msgspec.Struct, frozen=True, kw_only=True):
    """An emptyDir: made once, then the pod's own."""

    name: str
    path: str
    memory: bool = False
    size: int = 0
    """Bytes, of one in memory; 0 = the kernel's default."""
    group: int | None = None
    """fsGroup."""


class HostVolume(msgspec.Struct, frozen=True, kw_only=True):
    """A hostPath: checked, and where its type says so made; never removed."""

    name: str
    path: str
    type: str = ""


class FilesVolume(msgspec.Struct, frozen=True, kw_only=True):
    """configMap, secret, downwardAPI, projected: all files change at once, and only by podbus."""

    name: str
    path: str
    files: tuple[ProjectedFile, ...]
    memory: bool
    """In memory only: what a Secret holds is never written to a disk."""
    size: int = 0
    group: int | None = None
    mount_points: tuple[str, ...] = ()
    """Directories that other mounts of a container need below this one, which is read-only to the engine, too."""


VolumeSetup = DirectoryVolume | HostVolume | FilesVolume


class VolumeFault(msgspec.Struct, frozen=True):
    """Why a volume can't be set up. Its text names object and key, never a value."""

    volume: str
    message: str


class VolumePlan(msgspec.Struct, frozen=True, kw_only=True):
    setups: tuple[VolumeSetup, ...] = ()
    faults: tuple[VolumeFault, ...] = ()


def used_volumes(pod: Pod) -> list[Volume]:
    """Only what a container mounts, or reads variables from, is set up."""
    containers: Iterable[Container] = (*pod.spec.init_containers, *pod.spec.containers)
    names = {mount.name for container in containers for mount in container.volume_mounts}
    for container in containers:
        for variable in container.env:
            if variable.value_from is not None and variable.value_from.file_key_ref is not None:
                names.add(variable.value_from.file_key_ref.volume_name)
    return [volume for volume in pod.spec.volumes if volume.name in names]


def volume_path(pod: Pod, volume: Volume, node: NodeFacts) -> str:
    """Where the volume's root is on the node."""
    if volume.host_path is not None:
        return volume.host_path.path
    plugin = next(plugin for field, plugin in _PLUGINS.items() if getattr(volume, field) is not None)
    return str(PurePosixPath(pod_directory(node, pod.metadata.uid), "volumes", f"kubernetes.io~{plugin}", volume.name))


def is_files_volume(volume: Volume) -> bool:
    """Filled by podbus, read-only to the containers, refreshed while the pod runs."""
    return any(source is not None for source in (volume.config_map, volume.secret, volume.downward_api)) or (
        volume.projected is not None
    )


def volume_plan(pod: Pod, node: NodeFacts, objects: Objects) -> VolumePlan:
    """All that the pod's containers use, in the order of the spec."""
    setups: list[VolumeSetup] = []
    faults: list[VolumeFault] = []
    for volume in used_volumes(pod):
        try:
            setups.append(_setup(pod, volume, node, objects))
        except ConfigError as error:
            faults.append(VolumeFault(volume.name, str(error)))
    return VolumePlan(setups=tuple(setups), faults=tuple(faults))


def _setup(pod: Pod, volume: Volume, node: NodeFacts, objects: Objects) -> VolumeSetup:
    path = volume_path(pod, volume, node)
    if volume.host_path is not None:
        return HostVolume(name=volume.name, path=path, type=volume.host_path.type)
    if volume.empty_dir is not None:
        memory = volume.empty_dir.medium == "Memory"
        size = memory_size(pod, volume.empty_dir, node) if memory else 0
        return DirectoryVolume(name=volume.name, path=path, memory=memory, size=size, group=fs_group(pod))
    return FilesVolume(
        name=volume.name,
        path=path,
        files=tuple(_files(pod, volume, node, objects).values()),
        memory=volume.config_map is None,
        size=memory_size(pod, EmptyDirVolumeSource(), node),
        group=fs_group(pod),
        mount_points=nested_mount_points(pod, volume.name),
    )


def nested_mount_points(pod: Pod, name: str) -> tuple[str, ...]:
    """Where other volumes are mounted below this one, relative to it; none below one that is itself found.

    kubelet: getNestedMountpoints.
    """
    found: dict[str, None] = {}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        targets = {_cleaned(mount.mount_path): mount.name for mount in container.volume_mounts}
        for own in (target for target, volume in targets.items() if volume == name):
            last = ""
            for target in sorted(targets):
                if target.startswith(f"{own}/") and not (last and target.startswith(f"{last}/")):
                    last = target
                    found[target.removeprefix(f"{own}/")] = None
    return tuple(path for path in found if ".." not in path.split("/"))


def _cleaned(path: str) -> str:
    return str(PurePosixPath("/", path))


def memory_size(pod: Pod, source: EmptyDirVolumeSource, node: NodeFacts) -> int:
    """kubelet 1.36: what the node can give, the pod's memory limit, the volume's sizeLimit: the least that is set."""
    asked = Quantity.parse(str(source.size_limit)).value() if source.size_limit is not None else 0
    bounds = [b for b in (node.allocatable_memory_bytes, pod_limits(pod).memory, asked) if b > 0]
    return min(bounds, default=0)


def fs_group(pod: Pod) -> int | None:
    """Whose group the files of the pod's own volumes have; never those of the host."""
    return pod.spec.security_context.fs_group


def _files(pod: Pod, volume: Volume, node: NodeFacts, objects: Objects) -> dict[str, ProjectedFile]:
    """By path; a later source wins."""
    if volume.config_map is not None:
        source = volume.config_map
        ref = ConfigRef("ConfigMap", source.name)
        return _object_files(ref, source.items, source.default_mode, objects, optional=source.optional)
    if volume.secret is not None:
        secret = volume.secret
        ref = ConfigRef("Secret", secret.secret_name)
        return _object_files(ref, secret.items, secret.default_mode, objects, optional=secret.optional)
    if volume.downward_api is not None:
        return _downward_files(pod, volume.downward_api.items, volume.downward_api.default_mode, node)
    assert volume.projected is not None
    return _projected_files(pod, volume.projected, node, objects)


def _projected_files(
    pod: Pod, projected: ProjectedVolumeSource, node: NodeFacts, objects: Objects
) -> dict[str, ProjectedFile]:
    files: dict[str, ProjectedFile] = {}
    mode = projected.default_mode
    for source in projected.sources:
        if source.config_map is not None:
            given = source.config_map
            ref = ConfigRef("ConfigMap", given.name)
            files |= _object_files(ref, given.items, mode, objects, optional=given.optional)
        if source.secret is not None:
            secret = source.secret
            ref = ConfigRef("Secret", secret.name)
            files |= _object_files(ref, secret.items, mode, objects, optional=secret.optional)
        if source.downward_api is not None:
            files |= _downward_files(pod, source.downward_api.items, mode, node)
        if source.service_account_token is not None:
            files |= _token_file(pod, source.service_account_token, objects)
    return files


def _token_file(pod: Pod, wanted: ServiceAccountTokenProjection, objects: Objects) -> dict[str, ProjectedFile]:
    """kubelet: for the group alone where the pod has one for its files, else for everybody in the container."""
    found = objects.get(token_ref(wanted))
    if found is None:
        raise ConfigError("there is no token of the service account")
    path = str(PurePosixPath(wanted.path))
    return {path: ProjectedFile(path, found.data["token"], 0o644 if fs_group(pod) is None else 0o600)}


def _object_files(
    ref: ConfigRef, items: Sequence[KeyToPath], mode: int, objects: Objects, *, optional: bool
) -> dict[str, ProjectedFile]:
    found = objects.get(ref)
    if found is None:
        if optional:
            return {}
        raise ConfigError(not_found(ref))
    if not items:
        return {key: ProjectedFile(key, content, mode) for key, content in sorted(found.files.items())}
    return dict(_items(found, items, mode, optional=optional))


def _items(
    found: ConfigObject, items: Sequence[KeyToPath], mode: int, *, optional: bool
) -> Iterator[tuple[str, ProjectedFile]]:
    contents: Mapping[str, bytes] = found.files
    for item in items:
        if item.key in contents:
            path = str(PurePosixPath(item.path))
            yield path, ProjectedFile(path, contents[item.key], mode if item.mode is None else item.mode)
        elif not optional:
            kind = "config" if found.kind == "ConfigMap" else "secret"
            raise ConfigError(
                f'{found.kind.lower()} "{found.name}" references non-existent {kind} key: {item.key} ({keys_of(found)})'
            )


def _downward_files(
    pod: Pod, items: Sequence[DownwardAPIVolumeFile], mode: int, node: NodeFacts
) -> dict[str, ProjectedFile]:
    files: dict[str, ProjectedFile] = {}
    for item in items:
        if item.field_ref is not None:
            text = field_file(pod, item.field_ref.field_path)
        elif item.resource_field_ref is not None:
            text = resource_value(pod, None, item.resource_field_ref, node)
        else:
            continue
        path = str(PurePosixPath(item.path))
        files[path] = ProjectedFile(path, text.encode(), mode if item.mode is None else item.mode)
    return files
