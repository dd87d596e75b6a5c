"""Answers a worker's questions for a pod's ConfigMaps and Secrets, and tells it when they change.

Values go to the worker that asks, for a pod that refers to them, and nowhere else.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Collection, Iterable

from services.source.core.manifest import ObjectKey, describe
from services.source.core.merge import SourcePlan
from services.source.core.problems import Problem
from services.source.core.references import Referrer, concerned, missing_references, referrer
from services.source.core.state import JsonObject, SourceObject
from services.source.handlers.cluster_configs import ClusterConfigs
from shared.bus import Bus, RemoteError
from shared.contracts.configs import ConfigMapData, ConfigMapQuery, ConfigsChanged, SecretData, SecretQuery
from shared.contracts.pods import SourceName
from shared.contracts.registry import CONFIG_MAP, CONFIGS_CHANGED, SECRET
from shared.kube.references import ConfigRef


class ConfigDesk:
    """Knows what every source holds; `took` is told each new plan, `run` is a guarded task."""

    def __init__(self, bus: Bus, sources: Iterable[str], cluster: ClusterConfigs | None = None) -> None:
        """`sources`: all that are configured and hold manifests. Until each was listed nothing is said to be missing.
        `cluster` has what the pods of the API refer to."""
        self._bus = bus
        self._unlisted = set(sources)
        self._cluster = cluster
        if cluster is not None:
            cluster.changed = self._cluster_changed
        self._referrers: dict[SourceName, dict[str, Referrer]] = {}
        self._configs: dict[SourceName, dict[ObjectKey, SourceObject]] = {}
        self._changed: dict[str, None] = {}
        self._work = asyncio.Event()

    async def serve(self) -> None:
        await self._bus.serve(CONFIG_MAP, self.config_map)
        await self._bus.serve(SECRET, self.secret)

    def took(self, source: SourceName, plan: SourcePlan, *, is_listed: bool) -> list[Problem]:
        """What the source holds now; what its pods refer to and nobody holds. `is_listed`: it was really read."""
        known = self._referrers.get(source, {})
        self._referrers[source] = {
            pod.uid: Referrer(pod, old.uses)
            if (old := known.get(pod.uid)) is not None and old.pod.hash == pod.hash
            else referrer(pod)
            for pod in plan.pods
        }
        if source == "api":
            self._follow()
            return []
        before, was_waiting = self._all_configs(), bool(self._unlisted)
        self._configs[source] = {ObjectKey(c.kind, c.namespace, c.name): c for c in plan.configs}
        if is_listed:
            self._unlisted.discard(source)
        after = self._all_configs()
        everyone = [one for name, pods in self._referrers.items() if name != "api" for one in pods.values()]
        self._tell(concerned(everyone, before, after))
        if self._unlisted:
            return []
        if was_waiting:  # whoever was told to ask again later may ask now
            self._tell([one.pod.uid for one in everyone if one.uses])
        return missing_references(self._referrers[source].values(), after)

    async def config_map(self, query: ConfigMapQuery) -> ConfigMapData:
        body = await self._for_pod(query.uid, ConfigRef("ConfigMap", query.name))
        texts: dict[str, str] = body.get("data") or {}
        return ConfigMapData(
            namespace=body["metadata"]["namespace"],
            name=query.name,
            data={key: text.encode() for key, text in texts.items()},
            binary_data=_decoded(body.get("binaryData")),
        )

    async def secret(self, query: SecretQuery) -> SecretData:
        body = await self._for_pod(query.uid, ConfigRef("Secret", query.name))
        return SecretData(
            namespace=body["metadata"]["namespace"],
            name=query.name,
            type=body.get("type") or "Opaque",
            data=_decoded(body.get("data")),
        )

    async def run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            uids, self._changed = list(self._changed), {}
            await self._bus.hint(CONFIGS_CHANGED, ConfigsChanged(uids=uids))

    def _tell(self, uids: Collection[str]) -> None:
        if uids:
            self._changed.update(dict.fromkeys(uids))
            self._work.set()

    def _all_configs(self) -> dict[ObjectKey, SourceObject]:
        """The first source by name wins."""
        return {key: item for name in sorted(self._configs, reverse=True) for key, item in self._configs[name].items()}

    def asker(self, uid: str, ref: ConfigRef) -> Referrer:
        """The pod, which refers to `ref`. Raises RemoteError."""
        asker = next((pods[uid] for pods in self._referrers.values() if uid in pods), None)
        if asker is None:
            self._refuse_early()
            raise RemoteError("conflict", f"no source holds a pod {uid}")
        if not asker.refers_to(ref):
            raise RemoteError("forbidden", f"{describe(asker.pod.key)} doesn't refer to {ref.kind} {ref.name}")
        return asker

    @property
    def uids_of_api(self) -> frozenset[str]:
        return frozenset(self._referrers.get("api", {}))

    def pod_of_api(self, uid: str) -> SourceObject:
        """Raises RemoteError."""
        found = self._referrers.get("api", {}).get(uid)
        if found is None:
            raise RemoteError("conflict", f"the API server has no pod {uid} for this node")
        return found.pod

    def tell_pods_of_api(self) -> None:
        """What they wait for may be there."""
        self._tell(self.uids_of_api)

    async def _for_pod(self, uid: str, ref: ConfigRef) -> JsonObject:
        asker = self.asker(uid, ref)
        if self._cluster is not None and uid in self._referrers.get("api", {}):
            body = await self._cluster.get(asker.key(ref))
        else:
            found = self._all_configs().get(asker.key(ref))
            if found is None:
                self._refuse_early()
            body = found.body if found is not None else None
        if body is None:
            raise RemoteError("not_found", f'{ref.kind.lower()} "{ref.name}" not found')
        return body

    def _follow(self) -> None:
        """What the pods of the API refer to is watched."""
        if self._cluster is not None:
            self._cluster.want({one.key(use.ref) for one in self._referrers["api"].values() for use in one.uses})

    def _cluster_changed(self, key: ObjectKey) -> None:
        pods = self._referrers.get("api", {})
        self._tell([uid for uid, one in pods.items() if any(one.key(use.ref) == key for use in one.uses)])

    def _refuse_early(self) -> None:
        if self._unlisted:
            raise RemoteError("unavailable", f"not listed yet: {', '.join(sorted(self._unlisted))}")


def _decoded(values: dict[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(text) for key, text in (values or {}).items()}
