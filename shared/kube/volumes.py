"""The part of v1.Volume, of mounts and of environment sources that podbus acts on, frozen like shared.kube.pod."""

from __future__ import annotations

import msgspec

DEFAULT_MODE = 0o644


class _Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


# -- environment ------------------------------------------------------------------------------------------------


class ObjectFieldSelector(_Object, frozen=True, kw_only=True):
    field_path: str


class ResourceFieldSelector(_Object, frozen=True, kw_only=True):
    resource: str
    """`limits.cpu`, `requests.memory`..."""
    container_name: str = ""
    """"" = the container itself (environment only)."""
    divisor: str | int | float = "0"
    """A quantity; 0 = 1."""


class ConfigMapKeySelector(_Object, frozen=True, kw_only=True):
    name: str
    key: str
    optional: bool = False


class SecretKeySelector(_Object, frozen=True, kw_only=True):
    name: str
    key: str
    optional: bool = False


class FileKeySelector(_Object, frozen=True, kw_only=True):
    """A variable from a file `KEY='value'` in an emptyDir."""

    volume_name: str
    path: str
    key: str
    optional: bool = False


class EnvVarSource(_Object, frozen=True, kw_only=True):
    """One of the fields is set."""

    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class ConfigMapEnvSource(_Object, frozen=True, kw_only=True):
    name: str
    optional: bool = False


class SecretEnvSource(_Object, frozen=True, kw_only=True):
    name: str
    optional: bool = False


class EnvFromSource(_Object, frozen=True, kw_only=True):
    """All keys of an object as variables; one of the references is set."""

    prefix: str = ""
    config_map_ref: ConfigMapEnvSource | None = None
    secret_ref: SecretEnvSource | None = None


# -- volumes ----------------------------------------------------------------------------------------------------


class KeyToPath(_Object, frozen=True, kw_only=True):
    key: str
    path: str
    mode: int | None = None


class ConfigMapVolumeSource(_Object, frozen=True, kw_only=True):
    name: str
    items: list[KeyToPath] = []
    default_mode: int = DEFAULT_MODE
    optional: bool = False


class SecretVolumeSource(_Object, frozen=True, kw_only=True):
    secret_name: str
    items: list[KeyToPath] = []
    default_mode: int = DEFAULT_MODE
    optional: bool = False


class DownwardAPIVolumeFile(_Object, frozen=True, kw_only=True):
    """One of the references is set."""

    path: str
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: int | None = None


class DownwardAPIVolumeSource(_Object, frozen=True, kw_only=True):
    items: list[DownwardAPIVolumeFile] = []
    default_mode: int = DEFAULT_MODE


class ConfigMapProjection(_Object, frozen=True, kw_only=True):
    name: str
    items: list[KeyToPath] = []
    optional: bool = False


class SecretProjection(_Object, frozen=True, kw_only=True):
    name: str
    items: list[KeyToPath] = []
    optional: bool = False


class DownwardAPIProjection(_Object, frozen=True, kw_only=True):
    items: list[DownwardAPIVolumeFile] = []


class ServiceAccountTokenProjection(_Object, frozen=True, kw_only=True):
    path: str
    audience: str = ""
    """"" = the API server's own."""
    expiration_seconds: int = 3600


class VolumeProjection(_Object, frozen=True, kw_only=True):
    """One of the fields is set."""

    config_map: ConfigMapProjection | None = None
    secret: SecretProjection | None = None
    downward_api: DownwardAPIProjection | None = msgspec.field(default=None, name="downwardAPI")
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(_Object, frozen=True, kw_only=True):
    sources: list[VolumeProjection] = []
    default_mode: int = DEFAULT_MODE


class EmptyDirVolumeSource(_Object, frozen=True, kw_only=True):
    medium: str = ""
    """"" = disk, Memory."""
    size_limit: str | int | float | None = None


class HostPathVolumeSource(_Object, frozen=True, kw_only=True):
    path: str
    type: str = ""


class Volume(_Object, frozen=True, kw_only=True):
    """One of the sources is set."""

    name: str
    empty_dir: EmptyDirVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = msgspec.field(default=None, name="downwardAPI")
    projected: ProjectedVolumeSource | None = None


class VolumeMount(_Object, frozen=True, kw_only=True):
    name: str
    mount_path: str
    read_only: bool = False
    sub_path: str = ""
    sub_path_expr: str = ""
    mount_propagation: str = ""
    """"" = None, HostToContainer, Bidirectional."""
    recursive_read_only: str = ""
