"""A container's volumeMounts -> what is to be bound where (lifecycle 7.3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

import msgspec

from services.podworker.core.config_objects import ConfigError, Objects, keys_of
from services.podworker.core.expansion import expand
from services.podworker.core.node_facts import NodeFacts, pod_directory
from services.podworker.core.volumes import is_files_volume, volume_path
from shared.kube.pod import Container, Pod
from shared.kube.references import referenced, volume_uses
from shared.kube.volumes import Volume, VolumeMount

_PROPAGATION = {"": "rprivate", "None": "rprivate", "HostToContainer": "rslave", "Bidirectional": "rshared"}


class MountRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One mount before its sub path is looked up on the node."""

    volume: str
    root: str
    """The volume's root on the node."""
    sub_path: str = ""
    """Relative, below the root; "" = the root itself."""
    bind_path: str = ""
    """Where a sub path is bound, so that nothing can swap it under the engine's eyes."""
    target: str
    read_only: bool = False
    propagation: str = "rprivate"
    may_create: bool = True
    """Whether a missing sub path is made: a directory of the volume's own mode."""
    on_host: bool = False
    """The root is a hostPath."""
    missing: str = ""
    """What to say when a sub path that may not be made isn't there."""


class _Noting(dict[str, str]):
    """Notes what is asked for and isn't there, or is empty."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.missing: list[str] = []

    def get(self, key: str, default: str | None = None) -> str:  # type: ignore[override]
        value = super().get(key)
        if not value:
            self.missing.append(key)
        return value or default or ""


def mount_requests(
    pod: Pod, container: Container, node: NodeFacts, variables: Mapping[str, str], objects: Objects
) -> list[MountRequest]:
    """Raises ConfigError with the kubelet's words."""
    volumes = {volume.name: volume for volume in pod.spec.volumes}
    return [
        _request(pod, container, node, index, mount, volumes[mount.name], variables, objects)
        for index, mount in enumerate(container.volume_mounts)
    ]


def _request(
    pod: Pod,
    container: Container,
    node: NodeFacts,
    index: int,
    mount: VolumeMount,
    volume: Volume,
    variables: Mapping[str, str],
    objects: Objects,
) -> MountRequest:
    sub_path = _sub_path(mount, variables)
    is_files = is_files_volume(volume)
    if mount.recursive_read_only == "Enabled":
        raise ConfigError(f"mount of volume {mount.name}: the engine has no recursive read-only mounts")
    target = mount.mount_path if mount.mount_path.startswith("/") else f"/{mount.mount_path}"
    bind_path = ""
    if sub_path:
        directory = pod_directory(node, pod.metadata.uid)
        bind_path = str(PurePosixPath(directory, "volume-subpaths", mount.name, container.name, str(index)))
    return MountRequest(
        volume=mount.name,
        root=volume_path(pod, volume, node),
        sub_path=sub_path,
        bind_path=bind_path,
        target=target,
        read_only=mount.read_only or is_files,
        propagation=_PROPAGATION[mount.mount_propagation],
        may_create=not is_files,
        on_host=volume.host_path is not None,
        missing=_missing(volume, sub_path, objects) if is_files and sub_path else "",
    )


def _sub_path(mount: VolumeMount, variables: Mapping[str, str]) -> str:
    text = mount.sub_path
    if mount.sub_path_expr:
        noting = _Noting(variables)
        text = expand(mount.sub_path_expr, noting)
        if noting.missing:
            raise ConfigError(f"missing value for {noting.missing[0]}")
    if text.startswith("/"):
        raise ConfigError(f"error SubPath `{text}` must not be an absolute path")
    if ".." in text.split("/"):
        raise ConfigError(f"unable to provision SubPath `{text}`: must not contain '..'")
    path = str(PurePosixPath(text)) if text else ""
    return "" if path == "." else path


def _missing(volume: Volume, sub_path: str, objects: Objects) -> str:
    """The kubelet would make an empty directory: a misspelt key would show only in the program that misses its file."""
    refs = sorted(referenced(volume_uses(volume)))
    found = [objects.get(ref) for ref in refs]
    names = ", ".join(f'{ref.kind} "{ref.name}"' for ref in refs) or "the downward API"
    lists = "; ".join(keys_of(one) for one in found if one is not None)
    source = volume.config_map or volume.secret
    what = "key" if source is not None and not source.items else "file"
    return f'volume "{volume.name}": {names} has no {what} "{sub_path}" for subPath' + (f" ({lists})" if lists else "")
