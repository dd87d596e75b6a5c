"""Which ConfigMaps, Secrets and tokens a pod refers to: what it may be given, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from shared.kube.pod import Container, Pod
from shared.kube.volumes import ServiceAccountTokenProjection, Volume

ConfigKind = Literal["ConfigMap", "Secret", "ServiceAccountToken", "Services"]
"""The last two aren't objects: a token that is made for the pod, and the variables that tell of services."""


PULL_SECRETS = "imagePullSecrets"
"""The place of those: nothing waits for one that isn't there."""


class ConfigRef(NamedTuple):
    """An object of the pod's own namespace."""

    kind: ConfigKind
    name: str


class Use(NamedTuple):
    """One place where a pod refers to an object."""

    ref: ConfigRef
    optional: bool
    where: str
    """`container c`, `volume v`: for messages."""


def uses(pod: Pod) -> Iterator[Use]:
    """Every reference, in the order of the spec."""
    spec = pod.spec
    for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
        yield from environment_uses(container)
    for volume in spec.volumes:
        yield from volume_uses(volume)
    for secret in spec.image_pull_secrets:
        yield Use(ConfigRef("Secret", secret.name), False, PULL_SECRETS)


def environment_uses(container: Container) -> Iterator[Use]:
    """References of env and envFrom."""
    where = f"container {container.name}"
    for source in container.env_from:
        if source.config_map_ref is not None:
            yield Use(ConfigRef("ConfigMap", source.config_map_ref.name), source.config_map_ref.optional, where)
        if source.secret_ref is not None:
            yield Use(ConfigRef("Secret", source.secret_ref.name), source.secret_ref.optional, where)
    for variable in container.env:
        origin = variable.value_from
        if origin is None:
            continue
        if origin.config_map_key_ref is not None:
            key = origin.config_map_key_ref
            yield Use(ConfigRef("ConfigMap", key.name), key.optional, where)
        if origin.secret_key_ref is not None:
            secret = origin.secret_key_ref
            yield Use(ConfigRef("Secret", secret.name), secret.optional, where)


def volume_uses(volume: Volume) -> Iterator[Use]:
    """References of a configMap, secret or projected volume."""
    where = f"volume {volume.name}"
    if volume.config_map is not None:
        yield Use(ConfigRef("ConfigMap", volume.config_map.name), volume.config_map.optional, where)
    if volume.secret is not None:
        yield Use(ConfigRef("Secret", volume.secret.secret_name), volume.secret.optional, where)
    for source in volume.projected.sources if volume.projected is not None else ():
        if source.config_map is not None:
            yield Use(ConfigRef("ConfigMap", source.config_map.name), source.config_map.optional, where)
        if source.secret is not None:
            yield Use(ConfigRef("Secret", source.secret.name), source.secret.optional, where)
        if source.service_account_token is not None:
            yield Use(token_ref(source.service_account_token), False, where)


def token_ref(wanted: ServiceAccountTokenProjection) -> ConfigRef:
    """Tokens of the same life for the same audience are one."""
    return ConfigRef("ServiceAccountToken", f"{wanted.expiration_seconds} {wanted.audience}")


SERVICES = ConfigRef("Services", "")


def referenced(found: Iterable[Use]) -> frozenset[ConfigRef]:
    return frozenset(use.ref for use in found)
