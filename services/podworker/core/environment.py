"""A container's variables (lifecycle 7.2): envFrom in order, then env in order, the last of doubles wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from services.podworker.core.config_objects import ConfigError, ConfigObject, Objects, not_found
from services.podworker.core.downward import Addresses, field_value, resource_value
from services.podworker.core.env_file import env_file_value
from services.podworker.core.expansion import expand
from services.podworker.core.node_facts import NodeFacts
from shared.kube.pod import Container, EnvVar, Pod
from shared.kube.references import SERVICES, ConfigRef
from shared.kube.volumes import EnvFromSource, EnvVarSource, FileKeySelector


class FileKey(NamedTuple):
    """A file in one of the pod's emptyDirs."""

    volume: str
    path: str


class EnvInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What the variables of one container come from, besides the pod and the node."""

    objects: Objects = {}
    files: Mapping[FileKey, str] = {}
    """Text of each file; one that isn't there is absent."""
    addresses: Addresses = Addresses()

    @property
    def services(self) -> dict[str, str]:
        """What is told of services: in the variables as long as nothing else has their names."""
        found = self.objects.get(SERVICES)
        return {} if found is None else {name: _text(value) for name, value in found.data.items()}

    def __repr__(self) -> str:
        return f"EnvInputs(objects={list(self.objects)})"


class Environment(msgspec.Struct, frozen=True):
    variables: dict[str, str]
    private: frozenset[str] = frozenset()
    """Variables that hold a Secret's value, or were expanded from such a one."""

    def __repr__(self) -> str:
        return f"Environment({sorted(self.variables)})"

    def spelt_out_in(self, texts: Iterable[str]) -> bool:
        """Whether expanding the texts would write a Secret's value into them."""
        public = {name: value for name, value in self.variables.items() if name not in self.private}
        return any(expand(text, public) != expand(text, self.variables) for text in texts)


def environment(pod: Pod, container: Container, node: NodeFacts, inputs: EnvInputs) -> Environment:
    """Raises ConfigError where an object, a key or a file is missing that isn't optional."""
    variables: dict[str, str] = {}
    private: set[str] = set()
    for source in container.env_from:
        for name, value in _all_keys(source, inputs.objects).items():
            _set(variables, private, name, value, is_private=source.secret_ref is not None)
    for entry in container.env:
        _one(pod, container, node, inputs, entry, variables, private)
    return Environment({**inputs.services, **variables}, frozenset(private))


def _one(
    pod: Pod,
    container: Container,
    node: NodeFacts,
    inputs: EnvInputs,
    entry: EnvVar,
    variables: dict[str, str],
    private: set[str],
) -> None:
    origin = entry.value_from
    if origin is None:
        # Only what stands above is seen; of a name that is defined again, the value so far.
        known = {**inputs.services, **variables}
        is_private = Environment(known, frozenset(private)).spelt_out_in([entry.value])
        _set(variables, private, entry.name, expand(entry.value, known), is_private=is_private)
        return
    value = _from(pod, container, node, inputs, origin)
    if value is not None:
        _set(variables, private, entry.name, value, is_private=origin.secret_key_ref is not None)


def _set(variables: dict[str, str], private: set[str], name: str, value: str, *, is_private: bool) -> None:
    variables[name] = value
    (private.add if is_private else private.discard)(name)


def _from(pod: Pod, container: Container, node: NodeFacts, inputs: EnvInputs, origin: EnvVarSource) -> str | None:
    """None = optional, and not there."""
    if origin.field_ref is not None:
        return field_value(pod, origin.field_ref.field_path, inputs.addresses)
    if origin.resource_field_ref is not None:
        return resource_value(pod, container, origin.resource_field_ref, node)
    if origin.config_map_key_ref is not None:
        key = origin.config_map_key_ref
        return _key(ConfigRef("ConfigMap", key.name), key.key, inputs.objects, optional=key.optional)
    if origin.secret_key_ref is not None:
        secret = origin.secret_key_ref
        return _key(ConfigRef("Secret", secret.name), secret.key, inputs.objects, optional=secret.optional)
    if origin.file_key_ref is not None:
        return _file_key(origin.file_key_ref, inputs)
    return ""


def _key(ref: ConfigRef, key: str, objects: Objects, *, optional: bool) -> str | None:
    found = _object(ref, objects, optional=optional)
    if found is None:
        return None
    if key not in found.data:
        if optional:
            return None
        raise ConfigError(f"couldn't find key {key} in {found.kind} {found.namespace}/{found.name}")
    return _text(found.data[key])


def _all_keys(source: EnvFromSource, objects: Objects) -> dict[str, str]:
    values: dict[str, str] = {}
    for kind, given in (("ConfigMap", source.config_map_ref), ("Secret", source.secret_ref)):
        if given is None:
            continue
        ref = ConfigRef("ConfigMap" if kind == "ConfigMap" else "Secret", given.name)
        found = _object(ref, objects, optional=given.optional)
        if found is not None:
            values |= {f"{source.prefix}{key}": _text(found.data[key]) for key in sorted(found.data)}
    return values


def _object(ref: ConfigRef, objects: Objects, *, optional: bool) -> ConfigObject | None:
    found = objects.get(ref)
    if found is None and not optional:
        raise ConfigError(not_found(ref))
    return found


def _file_key(ref: FileKeySelector, inputs: EnvInputs) -> str | None:
    """kubelet: the file must be there even for an optional key."""
    place = f"file {ref.path} of volume {ref.volume_name}"
    text = inputs.files.get(FileKey(ref.volume_name, ref.path))
    if text is None:
        raise ConfigError(f"couldn't read {place}: no such file")
    try:
        value = env_file_value(text, ref.key)
    except ConfigError as error:
        raise ConfigError(f"couldn't parse {place}: {error}") from None
    if value:
        return value
    if ref.optional:
        return None
    what = "couldn't find key" if value is None else "empty value of key"
    raise ConfigError(f"{what} {ref.key} in {place}")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
