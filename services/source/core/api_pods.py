"""The pods that the API server has for this node -> what should run.

The API server has defaulted and validated them. What podbus can't run is published all the same, with the reason: the
pod is to be seen as Failed. Only a complete list takes pods away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from services.source.core.field_errors import FieldErrors
from services.source.core.manifest import ObjectKey, describe
from services.source.core.merge import Held, SourcePlan, replan
from services.source.core.problems import Problem, Severity
from services.source.core.state import FileState, SourceObject, SourceState
from services.source.core.static_pods import CONFIG_MIRROR, CONFIG_SEEN, CONFIG_SOURCE, content_hash
from services.source.core.unsupported import MESSAGE, refuse_unsupported
from shared.contracts.pods import MirrorPod
from shared.kube.pod import Pod
from shared.kube.pod_conditions import NODE_CONDITIONS

JsonObject = dict[str, Any]

_BOOKKEEPING = ("managedFields", "resourceVersion", "selfLink")
"""Changes with every write, whatever is written."""
_REFUSED_PROJECTIONS = ("clusterTrustBundle", "podCertificate")


@dataclass(frozen=True, slots=True)
class ApiListing:
    """The pods of this node as the API server tells them. `error`: why there is no complete list now."""

    origin: str
    pods: tuple[JsonObject, ...] = field(default=(), repr=False)
    error: str = ""


def plan_api(previous: SourceState, listing: ApiListing, now: float, others: Held) -> SourcePlan:
    """What the source wants after this listing. Pure; never raises."""
    if listing.error:
        plan = replan(previous, now, others)
        hint = "the last pods keep running" if previous.present else "nothing is known of its pods until it answers"
        told = Problem(Severity.ERROR, listing.origin, listing.error, hint=hint)
        return replace(plan, problems=(*plan.problems, told))
    files: dict[str, FileState] = {}
    for pod in listing.pods:
        path = path_of(pod)
        digest = _version(pod)
        before = previous.files.get(path)
        if before is not None and digest and before.digest == digest:
            files[path] = before
        elif not is_mirror(pod):
            files[path] = _read(pod, path, digest, before)
    return replan(replace(previous, files=files, present=True, listed_at=now), now, others)


def path_of(pod: JsonObject) -> str:
    meta = pod.get("metadata") or {}
    return f"/api/v1/namespaces/{meta.get('namespace', '')}/pods/{meta.get('name', '')}"


def is_mirror(pod: JsonObject) -> bool:
    """The picture of a pod that a node runs from a file or a URL."""
    return CONFIG_MIRROR in ((pod.get("metadata") or {}).get("annotations") or {})


def mirrors_of(pods: Iterable[JsonObject]) -> list[MirrorPod]:
    """Of the listed pods, those that only show what a file or a URL made run."""
    return [_mirror(pod["metadata"]) for pod in pods if is_mirror(pod)]


def versions_of(pods: Iterable[JsonObject]) -> dict[str, str]:
    """UID -> resourceVersion."""
    metas = (pod.get("metadata") or {} for pod in pods)
    return {str(meta.get("uid", "")): str(meta.get("resourceVersion", "")) for meta in metas}


def refusal(body: JsonObject) -> str:
    """Why podbus can't run this pod; "" = it can."""
    errors = FieldErrors()
    spec: JsonObject = body.get("spec") or {}
    if spec.get("resourceClaims"):
        errors.add("spec.resourceClaims", MESSAGE)
    for index, volume in enumerate(spec.get("volumes") or ()):
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            for kind in _REFUSED_PROJECTIONS:
                if kind in source:
                    errors.add(f"spec.volumes[{index}].projected.sources[{number}].{kind}", MESSAGE)
    refuse_unsupported(spec, "spec", errors)
    return "; ".join(f"{error.field}: {error.message}" for error in errors.found if not error.warning)


def deletion_grace(body: JsonObject) -> int | None:
    """Within how many seconds the pod is to end; None = it isn't being deleted."""
    meta = body.get("metadata") or {}
    if not meta.get("deletionTimestamp"):
        return None
    grace = meta.get("deletionGracePeriodSeconds")
    return grace if isinstance(grace, int) else 0


def _mirror(meta: JsonObject) -> MirrorPod:
    return MirrorPod(
        namespace=str(meta.get("namespace", "")),
        name=str(meta.get("name", "")),
        uid=str(meta.get("uid", "")),
        hash=str(meta["annotations"][CONFIG_MIRROR]),
        deleting=bool(meta.get("deletionTimestamp")),
    )


def _read(pod: JsonObject, path: str, digest: str, before: FileState | None) -> FileState:
    body = _published(pod)
    meta = body["metadata"]
    key = ObjectKey("Pod", str(meta.get("namespace", "")), str(meta.get("name", "")))
    try:
        msgspec.convert(body, Pod)
    except msgspec.ValidationError as error:
        told = Problem(Severity.ERROR, path, f"{describe(key)} can't be read: {error}")
        return FileState(path, digest, before.objects if before else (), (told,))
    # The status counts as far as it's published.
    content = content_hash({**body, "given": body["status"]})
    item = SourceObject(key, path, 0, 0, key.namespace, key.name, str(meta["uid"]), content, body)
    return FileState(path, digest, (item,), tuple(_refused(item)))


def _refused(item: SourceObject) -> Iterable[Problem]:
    if reason := refusal(item.body):
        yield Problem(Severity.ERROR, item.path, reason, hint="the pod is shown as Failed")
    if item.body["spec"].get("ephemeralContainers"):
        yield Problem(
            Severity.WARNING,
            item.path,
            MESSAGE,
            field="spec.ephemeralContainers",
            hint="the pod's other containers run; `podbus exec` enters them",
        )


def _published(pod: JsonObject) -> JsonObject:
    meta: JsonObject = {key: value for key, value in (pod.get("metadata") or {}).items() if key not in _BOOKKEEPING}
    annotations = {key: text for key, text in (meta.get("annotations") or {}).items() if key != CONFIG_SEEN}
    meta["annotations"] = {**annotations, CONFIG_SOURCE: "api"}
    meta.setdefault("uid", "")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": pod.get("spec") or {},
        "status": _given(pod.get("status") or {}),
    }


def _given(status: Mapping[str, Any]) -> JsonObject:
    """That it is over, and what others than the node say of it."""
    given: JsonObject = {}
    if status.get("phase") in ("Failed", "Succeeded"):
        given = {name: status[name] for name in ("phase", "reason", "message") if status.get(name)}
    # What the node itself writes comes back in each list, and is no news.
    others = [one for one in status.get("conditions") or () if one.get("type") not in NODE_CONDITIONS]
    return {**given, "conditions": others} if others else given


def _version(pod: JsonObject) -> str:
    meta = pod.get("metadata") or {}
    return f"{meta.get('uid', '')} {meta.get('resourceVersion', '')}"
