"""ConfigMaps and Secrets over the bus. Nothing is kept: each start and each refresh asks anew."""

from __future__ import annotations

from services.podworker.core.config_objects import ConfigObject
from services.podworker.ports import ConfigUnavailable
from shared.bus import Bus, BusUnavailable, RemoteError
from shared.contracts.configs import ConfigMapQuery, SecretQuery, ServicesQuery, TokenQuery
from shared.contracts.registry import CONFIG_MAP, SECRET, SERVICES_OF_POD, TOKEN
from shared.kube.references import ConfigRef


class BusConfigObjects:
    """ConfigObjects (services.podworker.ports), answered by source."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def get(self, uid: str, ref: ConfigRef) -> ConfigObject | None:
        try:
            return await self._ask(uid, ref)
        except RemoteError as error:
            if error.code == "not_found":
                return None
            raise ConfigUnavailable(f'{ref.kind.lower()} "{ref.name}": {error.message}') from error
        except BusUnavailable as error:
            raise ConfigUnavailable(f'{ref.kind.lower()} "{ref.name}" can\'t be asked for now: {error}') from error

    async def _ask(self, uid: str, ref: ConfigRef) -> ConfigObject:
        if ref.kind == "ServiceAccountToken":
            seconds, _, audience = ref.name.partition(" ")
            token = await self._bus.request(TOKEN, TokenQuery(uid=uid, audience=audience, seconds=int(seconds)))
            return ConfigObject(kind=ref.kind, namespace="", name="", data={"token": token.token.encode()})
        if ref.kind == "Services":
            services = await self._bus.request(SERVICES_OF_POD, ServicesQuery(uid=uid))
            texts = {name: value.encode() for name, value in services.variables.items()}
            return ConfigObject(kind=ref.kind, namespace="", name="", data=texts)
        if ref.kind == "Secret":
            secret = await self._bus.request(SECRET, SecretQuery(uid=uid, name=ref.name))
            return ConfigObject(
                kind="Secret", namespace=secret.namespace, name=secret.name, type=secret.type, data=secret.data
            )
        found = await self._bus.request(CONFIG_MAP, ConfigMapQuery(uid=uid, name=ref.name))
        return ConfigObject(
            kind="ConfigMap", namespace=found.namespace, name=found.name, data=found.data, binary=found.binary_data
        )
