"""One file's bytes -> the Pods, ConfigMaps and Secrets that it holds, and everything that is wrong with it.

Objects come back defaulted and validated, as plain dicts. A fault in one document or PodList item leaves
the others alone. Nothing here raises, whatever the bytes are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from services.source.core.conform import Conformer, without_consequences
from services.source.core.defaults import apply_pod_defaults
from services.source.core.documents import MAX_DOCUMENTS, Document, parse_documents
from services.source.core.field_errors import FieldError, FieldErrors, quote, show
from services.source.core.problems import Problem, Severity
from services.source.core.unsupported import refuse_unsupported
from services.source.core.validate_config import merge_string_data, validate_config_map, validate_secret
from services.source.core.validate_spec import validate_pod
from services.source.core.validate_static import validate_static_references
from shared.kube.validation_names import dns_label_errors, dns_subdomain_errors

JsonObject = dict[str, Any]

KINDS = ("ConfigMap", "Pod", "Secret")
DEFAULT_NAMESPACE = "default"
#: Problems told of one object, and of one file: more help nobody, and the marker on the bus has its bound.
MAX_PROBLEMS = 50
MAX_FILE_PROBLEMS = 200
#: Written by API servers; a manifest may carry them (`kubectl get -o yaml`), they mean nothing here.
_SERVER_FIELDS = ("generation", "managedFields", "resourceVersion", "selfLink")
_WORKLOADS = (
    "DaemonSet",
    "Deployment",
    "Job",
    "CronJob",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
)


class ObjectKey(NamedTuple):
    """What a manifest calls its object: the name is as written, without the node's suffix."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """One accepted object. The body may hold secrets: it is in no repr."""

    key: ObjectKey
    body: JsonObject = field(repr=False)
    line: int
    document: int


@dataclass(frozen=True, slots=True)
class FileManifests:
    """What one file holds.

    `broken` are the objects that the file names and that aren't valid; `unread` counts the documents and
    items whose object can't be told. With neither, the file is sound.
    """

    manifests: tuple[Manifest, ...]
    problems: tuple[Problem, ...]
    broken: frozenset[ObjectKey]
    unread: int


def read_manifests(path: str, data: bytes, *, strict: bool = False, whole_lists: bool = False) -> FileManifests:
    """All objects of a file; `strict` makes unknown fields errors (PODBUS_STRICT); with `whole_lists` one faulty item
    turns its PodList down (the kubelet's rule for a URL). Never raises."""
    parsed = parse_documents(path, data)
    reader = _Reader(path, strict=strict, whole_lists=whole_lists)
    reader.problems += parsed.problems
    reader.unread = parsed.unread
    for document in parsed.documents:
        reader.document(document)
    problems = sorted(dict.fromkeys(reader.problems), key=lambda problem: (problem.document, problem.line))
    if len(problems) > MAX_FILE_PROBLEMS:
        left_out = problems[MAX_FILE_PROBLEMS:]
        problems = [*problems[:MAX_FILE_PROBLEMS], Problem(_worst(left_out), path, _more(len(left_out)))]
    return FileManifests(tuple(reader.manifests), tuple(problems), frozenset(reader.broken), reader.unread)


def _worst(problems: list[Problem]) -> Severity:
    return Severity.ERROR if any(problem.is_error for problem in problems) else Severity.WARNING


def _more(count: int) -> str:
    return f"{count} more problems are not shown"


class _Reader:
    def __init__(self, path: str, *, strict: bool, whole_lists: bool) -> None:
        self._path = path
        self._strict = strict
        self._whole_lists = whole_lists
        self.manifests: list[Manifest] = []
        self.problems: list[Problem] = []
        self.broken: set[ObjectKey] = set()
        self.unread = 0

    def document(self, document: Document) -> None:
        """Read one document into `manifests`, or its faults into `problems`."""
        value = document.value
        if not isinstance(value, dict):
            what = "a list" if isinstance(value, list) else f"a plain value ({show(type(value).__name__)})"
            self._refuse(document, FieldError("", f"expected an object with apiVersion and kind, got {what}", ""))
            return
        kind, errors = _header(value)
        if errors.found:
            self._reject(document, value, errors.found, KINDS if kind not in KINDS else (kind,))
        elif kind == "PodList":
            self._pod_list(document, value)
        elif kind == "Pod":
            self._pod(document, value, "")
        else:
            self._config(document, value, kind)

    def _pod_list(self, document: Document, value: JsonObject) -> None:
        frame = Conformer("PodList", "", strict=self._strict)
        frame.conform({key: inner for key, inner in value.items() if key != "items"})
        self._tell(document, frame.errors.found)
        items = value.get("items")
        if not isinstance(items, list):
            self._refuse(document, FieldError("items", f"expected list, got {show(items)}", "items"))
            return
        if len(items) > MAX_DOCUMENTS:
            self._refuse(document, FieldError("items", f"more than {MAX_DOCUMENTS} items in one list", "items"))
            return
        before, sound = len(self.manifests), (len(self.broken), self.unread)
        self._items(document, items)
        if self._whole_lists and (len(self.broken), self.unread) != sound:
            self.broken.update(manifest.key for manifest in self.manifests[before:])
            del self.manifests[before:]
            self._refuse(document, FieldError("items", "not all items are valid: none is taken", "items"))

    def _items(self, document: Document, items: list[Any]) -> None:
        for index, item in enumerate(items):
            place = f"items[{index}]"
            if not isinstance(item, dict):
                self._refuse(document, FieldError(place, f"expected object, got {show(item)}", place))
                continue
            errors = FieldErrors()
            for name, wanted in (("apiVersion", "v1"), ("kind", "Pod")):
                if item.get(name) not in (None, wanted):
                    errors.unsupported(f"{place}.{name}", item[name], (wanted,))
            if errors.found:
                self._reject(document, item, errors.found, KINDS)
            else:
                self._pod(document, {**item, "apiVersion": "v1", "kind": "Pod"}, f"{place}.")

    def _pod(self, document: Document, value: JsonObject, prefix: str) -> None:
        conformer = Conformer("Pod", prefix.removesuffix("."), strict=self._strict)
        body = conformer.conform(value)
        _drop_server_fields(body)
        errors = FieldErrors()
        spec: JsonObject = body.setdefault("spec", {})
        refuse_unsupported(spec, f"{prefix}spec", errors)
        apply_pod_defaults(body)
        validate_pod(body, prefix, errors)
        validate_static_references(spec, f"{prefix}spec", errors)
        self._finish(document, value, body, "Pod", conformer, errors)

    def _config(self, document: Document, value: JsonObject, kind: str) -> None:
        conformer = Conformer(kind, "", strict=self._strict)
        body = conformer.conform(value)
        _drop_server_fields(body)
        errors = FieldErrors()
        if kind == "Secret":
            merge_string_data(body)
            validate_secret(body, errors)
        else:
            validate_config_map(body, errors)
        self._finish(document, value, body, kind, conformer, errors)

    def _finish(
        self,
        document: Document,
        value: JsonObject,
        body: JsonObject,
        kind: str,
        conformer: Conformer,
        errors: FieldErrors,
    ) -> None:
        found = [*conformer.errors.found, *without_consequences(errors.found, conformer.wrong)]
        if any(not error.warning for error in found):
            self._reject(document, value, found, (kind,))
            return
        self._tell(document, found)
        meta: JsonObject = body["metadata"]
        meta["namespace"] = meta.get("namespace") or DEFAULT_NAMESPACE
        key = ObjectKey(kind, meta["namespace"], meta["name"])
        self.manifests.append(Manifest(key, body, document.line_of(conformer.prefix), document.index))

    def _reject(self, document: Document, value: JsonObject, found: list[FieldError], kinds: tuple[str, ...]) -> None:
        """Tell the faults; note which object it would have been, or that it can't be known."""
        self._tell(document, found)
        named = _named(value)
        if named is None:
            self.unread += 1
        else:
            self.broken.update(ObjectKey(kind, *named) for kind in kinds)

    def _refuse(self, document: Document, error: FieldError) -> None:
        self._tell(document, [error])
        self.unread += 1

    def _tell(self, document: Document, found: list[FieldError]) -> None:
        # Of too many, the errors are told first.
        shown = found if len(found) <= MAX_PROBLEMS else sorted(found, key=lambda e: e.warning)[:MAX_PROBLEMS]
        for error in shown:
            self.problems.append(
                Problem(
                    Severity.WARNING if error.warning else Severity.ERROR,
                    self._path,
                    error.message,
                    document.line_of(error.at),
                    document.index,
                    error.field,
                    error.hint,
                )
            )
        if len(shown) < len(found):
            # After the others of its document, whose lines aren't known without a search.
            last = max(problem.line for problem in self.problems[-MAX_PROBLEMS:])
            severity = self.problems[-1].severity
            more = _more(len(found) - len(shown))
            self.problems.append(Problem(severity, self._path, more, last, document.index))


def _header(value: JsonObject) -> tuple[str, FieldErrors]:
    errors = FieldErrors()
    kind, version = value.get("kind"), value.get("apiVersion")
    for name, given in (("apiVersion", version), ("kind", kind)):
        if given is None or given == "":
            errors.required(name, hint="every document needs apiVersion and kind")
        elif not isinstance(given, str):
            errors.add(name, f"expected string, got {show(given)}")
    if errors.found:
        return str(kind) if isinstance(kind, str) else "", errors
    supported = (*KINDS, "PodList")
    if kind not in supported:
        errors.unsupported("kind", kind, supported)
        last = errors.found.pop()
        hint = ""
        if kind in _WORKLOADS:
            hint = f"a {kind} needs a controller; write the pod of its spec.template as kind Pod"
        elif kind == "List":
            hint = "write its items as documents with --- between them"
        errors.add(last.field, last.message, hint=hint)
    elif version != "v1":
        errors.unsupported("apiVersion", version, ("v1",))
    return str(kind), errors


def _named(value: JsonObject) -> tuple[str, str] | None:
    """Namespace and name that a broken document gives itself, if they could be an object's at all."""
    meta = value.get("metadata")
    if not isinstance(meta, dict):
        return None
    name, namespace = meta.get("name"), meta.get("namespace") or DEFAULT_NAMESPACE
    if not isinstance(name, str) or not isinstance(namespace, str):
        return None
    if dns_subdomain_errors(name) or dns_label_errors(namespace):
        return None
    return namespace, name


def _drop_server_fields(body: JsonObject) -> None:
    body.pop("status", None)
    meta = body.get("metadata") or {}
    for name in _SERVER_FIELDS:
        meta.pop(name, None)


def describe(key: ObjectKey) -> str:
    """`Pod "default/web"`, for messages."""
    return f"{key.kind} {quote(f'{key.namespace}/{key.name}')}"
