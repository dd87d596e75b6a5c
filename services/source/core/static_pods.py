"""What the kubelet generates for a pod from a file or URL (kubelet 1.36: applyDefaults in
pkg/kubelet/config)."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any

from services.source.core.field_errors import FieldErrors
from services.source.core.manifest import DEFAULT_NAMESPACE
from shared.kube.validation_names import dns_subdomain_errors

JsonObject = dict[str, Any]

CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_SOURCE = "kubernetes.io/config.source"
CONFIG_SEEN = "kubernetes.io/config.seen"
CONFIG_MIRROR = "kubernetes.io/config.mirror"
#: Annotations that say where a pod came from, not what it is.
_BOOKKEEPING = (CONFIG_SOURCE, CONFIG_SEEN, CONFIG_MIRROR)
_UID_BYTES = 16


def canonical_json(value: object) -> bytes:
    """The one spelling of a JSON value: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def content_hash(body: JsonObject) -> str:
    """32 hex digits over spec, labels and annotations, but for the annotations that tell only the source.

    What the kubelet compares to tell an update (kubelet 1.36: checkAndUpdatePod); status never counts.
    """
    meta = dict(body.get("metadata") or {})
    annotations = {key: text for key, text in (meta.get("annotations") or {}).items() if key not in _BOOKKEEPING}
    meta["annotations"] = annotations
    content = {key: value for key, value in body.items() if key != "status"} | {"metadata": meta}
    return hashlib.blake2b(canonical_json(content), digest_size=_UID_BYTES).hexdigest()


def static_uid(body: JsonObject, source: str, node: str, origin: str) -> str:
    """The UID of a pod without one: the same content, node and place give the same 32 hex digits, for
    ever."""
    digest = hashlib.blake2b(canonical_json(body), digest_size=_UID_BYTES)
    if source == "file":
        digest.update(f"\nhost:{node}\nfile:{origin}".encode())
    else:
        # As upstream: the same URL gives the same UID on every node.
        digest.update(f"\nurl:{origin}".encode())
    return digest.hexdigest()


def static_name(name: str, node: str) -> str:
    """The pod's name on this node: unique in the cluster, since every node may have the same file."""
    return f"{name}-{node.lower()}"


def make_static_pod(
    body: JsonObject, *, source: str, node: str, origin: str, prefix: str = ""
) -> tuple[JsonObject, FieldErrors]:
    """The pod to run from a defaulted, validated manifest; `body` isn't changed.

    `source` is "file" or "http", `origin` the file's path or the URL. Errors: a name too long with the
    node's suffix.
    """
    errors = FieldErrors()
    pod = copy.deepcopy(body)
    meta: JsonObject = pod.setdefault("metadata", {})
    uid = meta.get("uid") or static_uid(body, source, node, origin)
    meta["uid"] = uid
    name = static_name(meta.get("name", ""), node)
    errors.invalid_all(f"{prefix}metadata.name", name, dns_subdomain_errors(name))
    meta["name"] = name
    meta["namespace"] = meta.get("namespace") or DEFAULT_NAMESPACE
    spec: JsonObject = pod.setdefault("spec", {})
    spec["nodeName"] = node
    annotations = {**(meta.get("annotations") or {}), CONFIG_HASH: uid, CONFIG_SOURCE: source}
    # The manifest can't say when this node saw it.
    annotations.pop(CONFIG_SEEN, None)
    meta["annotations"] = annotations
    if source == "file":
        _tolerate_no_execute(spec)
    return pod, errors


def _tolerate_no_execute(spec: JsonObject) -> None:
    """No taint may evict a pod that the node itself will start again."""
    wanted = {"operator": "Exists", "effect": "NoExecute"}
    tolerations: list[JsonObject] = spec.setdefault("tolerations", [])
    for toleration in tolerations:
        same = {key: value for key, value in toleration.items() if value and key != "tolerationSeconds"}
        if same == wanted:
            toleration.pop("tolerationSeconds", None)
            return
    tolerations.append(wanted)
