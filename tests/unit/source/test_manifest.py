"""Documents become pods, ConfigMaps and Secrets, or problems that say what to change."""

# ruff: noqa: E501 - a table with one row per rule reads best unbroken

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from services.source.core.manifest import (
    MAX_FILE_PROBLEMS,
    MAX_PROBLEMS,
    FileManifests,
    ObjectKey,
    read_manifests,
)

HEAD = "apiVersion: v1\nkind: Pod\n"
GOOD = HEAD + "metadata: {name: web}\nspec:\n  containers:\n  - {name: c, image: busybox:1.36}\n"


def read(text: str, *, strict: bool = False) -> FileManifests:
    return read_manifests("f.yaml", text.encode(), strict=strict)


def texts(result: FileManifests) -> list[str]:
    return [problem.text() for problem in result.problems]


def test_a_good_pod_is_accepted_with_its_place() -> None:
    (manifest,) = read("# hello\n" + GOOD).manifests
    assert manifest.key == ObjectKey("Pod", "default", "web")
    assert (manifest.line, manifest.document) == (2, 1)


def test_the_defaults_of_the_api_are_set() -> None:
    (manifest,) = read(GOOD).manifests
    assert manifest.body == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "busybox:1.36",
                    "imagePullPolicy": "IfNotPresent",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }
            ],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        },
    }


def test_a_null_is_an_unset_field() -> None:
    text = GOOD.replace("spec:\n", "spec:\n  restartPolicy: null\n  volumes: ~\n")
    (manifest,) = read(text).manifests
    assert manifest.body["spec"]["restartPolicy"] == "Always"
    assert "volumes" not in manifest.body["spec"]


def test_what_an_api_server_wrote_is_dropped() -> None:
    text = GOOD.replace(
        "{name: web}", "{name: web, creationTimestamp: null, resourceVersion: '7', managedFields: [{}], generation: 2}"
    )
    (manifest,) = read(text + "status: {phase: Running}\n").manifests
    assert manifest.body["metadata"] == {"name": "web", "namespace": "default"}
    assert "status" not in manifest.body


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("spec.terminationGracePeriodSeconds", '"x"', 'expected integer, got string "x"'),
        ("spec.terminationGracePeriodSeconds", '"5"', 'expected integer, got string "5" (remove the quotes)'),
        ("spec.terminationGracePeriodSeconds", "1.5", "expected integer, got number 1.5"),
        ("spec.terminationGracePeriodSeconds", "99999999999999999999", "99999999999999999999 doesn't fit into int64"),
        ("spec.priority", "3000000000", "3000000000 doesn't fit into int32"),
        ("spec.hostname", "5", 'expected string, got integer 5 (put quotes around it: "5")'),
        ("spec.hostname", "on", "expected string, got boolean true (yes, no, on, off, true and false are booleans"),
        ("spec.enableServiceLinks", '"true"', 'expected boolean, got string "true" (remove the quotes)'),
        ("spec.tolerations", "{}", "expected list, got an object"),
        ("spec.nodeSelector", "[]", "expected object, got a list"),
        ("spec.nodeSelector", "{a: 1}", 'expected string, got integer 1 (put quotes around it: "1")'),
        ("spec.affinity", "x", 'expected object, got string "x"'),
        ("metadata.creationTimestamp", "2020", "expected RFC 3339 time, got integer 2020"),
        ("spec.hostname", r'"a\0"', "must not contain a NUL character"),
    ],
)
def test_a_value_of_the_wrong_type_says_what_was_expected(field: str, value: str, expected: str) -> None:
    section, name = field.split(".")
    text = GOOD.replace("metadata: {name: web}", "metadata:\n  name: web").replace(
        f"{section}:\n", f"{section}:\n  {name}: {value}\n"
    )
    result = read(text)
    assert result.manifests == ()
    assert len(result.problems) == 1, texts(result)
    assert expected in texts(result)[0]
    assert result.problems[0].field.startswith(field)


def test_every_error_of_a_pod_is_told_at_once_with_its_line() -> None:
    text = """\
apiVersion: v1
kind: Pod
metadata:
  name: Web
  labels: {a: 'q"uote'}
spec:
  restartPolicy: Sometimes
  terminationGracePeriodSeconds: "x"
  containers:
  - name: A
  - {name: b, image: x, ports: [{containerPort: 99999}], resources: {limits: {memory: 64MB}}}
  - {name: b, image: x}
"""
    result = read(text)
    assert [(problem.line, problem.field) for problem in result.problems] == [
        (4, "metadata.name"),
        (5, "metadata.labels"),
        (7, "spec.restartPolicy"),
        (8, "spec.terminationGracePeriodSeconds"),
        (10, "spec.containers[0].name"),
        (10, "spec.containers[0].image"),
        (11, "spec.containers[1].resources.limits[memory]"),
        (11, "spec.containers[1].ports[0].containerPort"),
        (12, "spec.containers[2].name"),
    ]
    assert all(problem.is_error and problem.document == 1 for problem in result.problems)


def test_a_wrong_type_brings_no_errors_that_only_follow_from_it() -> None:
    assert texts(read(HEAD + "metadata: x\nspec: {containers: {}}\n")) == [
        'f.yaml:3: metadata: expected object, got string "x"',
        'f.yaml:4: spec.containers: expected list, got an object (each item begins with "- ")',
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metadata: {name: a, restartPolicy: Never}", 'metadata.restartPolicy: unknown field "restartPolicy" (did you mean "spec.restartPolicy"?)'),
        ("metadata: {name: a, lables: {}}", 'did you mean "metadata.labels"?'),
        ("metadata: {name: a}\nspek: {}", 'did you mean "spec"?'),
        ("metadata: {name: a}\nxyzzy: {}", 'f.yaml:4: xyzzy: unknown field "xyzzy"'),
    ],
)  # fmt: skip
def test_an_unknown_field_is_a_warning_with_the_name_it_probably_is(text: str, expected: str) -> None:
    result = read(HEAD + text + "\nspec: {containers: [{name: c, image: x}]}\n")
    assert len(result.manifests) == 1
    assert expected in "\n".join(texts(result))
    assert not result.problems[0].is_error


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ("hostNetwork: false", "spec.hostNetwork"),
        ("requests: {}", "spec.containers[0].resources.requests"),
        ("imagepullpolicy: x", "spec.containers[0].imagePullPolicy"),
        ("terminationGracePeriodSeconds: 3", "spec.terminationGracePeriodSeconds"),
        ("enviroment: []", ""),
        ("comand: []", "spec.containers[0].command"),
        ("runAsUser: 1", "spec.containers[0].securityContext.runAsUser"),
    ],
)
def test_a_misplaced_field_of_a_container_is_placed(container: str, expected: str) -> None:
    result = read(HEAD + "metadata: {name: a}\nspec: {containers: [{name: c, image: x, " + container + "}]}\n")
    (problem,) = result.problems
    assert problem.hint == (f'did you mean "{expected}"?' if expected else "")


def test_strict_makes_unknown_fields_errors() -> None:
    result = read(GOOD + "xyzzy: 1\n", strict=True)
    assert result.manifests == ()
    assert result.problems[0].is_error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: Pod\n", "apiVersion: Required value"),
        ("apiVersion: v1\n", "kind: Required value"),
        ("apiVersion: v1\nkind: [a]\n", "kind: expected string, got list"),
        ("apiVersion: v1\nkind: Service\n", 'kind: Unsupported value: "Service": supported values: "ConfigMap", "Pod", "PodList", "Secret"'),
        ("apiVersion: apps/v1\nkind: Deployment\n", "write the pod of its spec.template as kind Pod"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "write its items as documents with --- between them"),
        ("apiVersion: v2\nkind: Pod\n", 'apiVersion: Unsupported value: "v2": supported values: "v1"'),
        ("- a\n", "expected an object with apiVersion and kind, got a list"),
        ("hello\n", "expected an object with apiVersion and kind, got a plain value"),
    ],
)  # fmt: skip
def test_what_is_no_pod_is_named(text: str, expected: str) -> None:
    result = read(text)
    assert result.manifests == ()
    assert expected in "\n".join(texts(result))
    assert result.unread == 1


def test_a_bad_document_leaves_the_others_of_its_file_alone() -> None:
    result = read(
        GOOD + "---\n" + GOOD.replace("web", "two").replace("image", "imag") + "---\n" + GOOD.replace("web", "three")
    )
    assert [manifest.key.name for manifest in result.manifests] == ["web", "three"]
    assert result.broken == {ObjectKey("Pod", "default", "two")}
    assert result.unread == 0


def test_a_broken_document_of_unknown_kind_may_be_any_object_of_its_name() -> None:
    result = read("apiVersion: v1\nkind: Pdo\nmetadata: {name: web, namespace: x}\n")
    assert ObjectKey("Pod", "x", "web") in result.broken


def test_a_document_with_an_unusable_name_cannot_be_told() -> None:
    assert read(GOOD.replace("web", "WEB")).unread == 1


def test_a_pod_list_gives_every_good_item() -> None:
    pod: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    items = [
        pod,
        {"kind": "Pod", "apiVersion": "v1", **pod, "metadata": {"name": "b", "namespace": "n"}},
        {"kind": "Secret", "metadata": {"name": "s"}},
        {"metadata": {"name": "broken"}, "spec": {"containers": []}},
        None,
        5,
    ]
    result = read(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items}))
    assert [manifest.key for manifest in result.manifests] == [
        ObjectKey("Pod", "default", "a"),
        ObjectKey("Pod", "n", "b"),
    ]
    assert [problem.field for problem in result.problems] == [
        "items[2].kind",
        "items[3].spec.containers",
        "items[4]",
        "items[5]",
    ]
    assert result.unread == 2


def test_a_pod_lists_items_must_be_a_list() -> None:
    result = read("apiVersion: v1\nkind: PodList\nitems: {}\n")
    assert (result.manifests, result.unread) == ((), 1)


def test_a_config_map_is_accepted() -> None:
    (manifest,) = read(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a.b: x}\nbinaryData: {c: aGk=}\n"
    ).manifests
    assert manifest.key == ObjectKey("ConfigMap", "default", "m")


def test_string_data_of_a_secret_overrides_its_data() -> None:
    (manifest,) = read(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: eA==, b: eA==}\nstringData: {b: new}\n"
    ).manifests
    assert manifest.body["data"] == {"a": "eA==", "b": base64.b64encode(b"new").decode()}
    assert manifest.body["type"] == "Opaque"
    assert "stringData" not in manifest.body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("kind: ConfigMap\nmetadata: {name: m}\ndata: {a/b: x}", "data[a/b]: Invalid value"),
        ("kind: ConfigMap\nmetadata: {name: m}\ndata: {a: 1}", "data[a]: expected string, got integer 1"),
        ("kind: ConfigMap\nmetadata: {name: m}\ndata: {a: x}\nbinaryData: {a: eA==}", "duplicate of key present in data"),
        ("kind: ConfigMap\nmetadata: {}", "metadata.name: Required value"),
        ("kind: Secret\nmetadata: {name: m}\ndata: {a: 'not base64!'}", "data[a]: not valid base64"),
        ("kind: Secret\nmetadata: {name: m}\ntype: kubernetes.io/tls\ndata: {tls.crt: eA==}", "data[tls.key]: Required value"),
    ],
)  # fmt: skip
def test_bad_config_is_refused(body: str, expected: str) -> None:
    assert expected in "\n".join(texts(read("apiVersion: v1\n" + body + "\n")))


@pytest.mark.parametrize("field", ["data: {k: 's3cret value'}", "stringData: {k: 5333}", "stringData: {k: [s3cret]}"])
def test_no_message_shows_a_value_of_a_secret(field: str) -> None:
    result = read("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n" + field + "\n")
    assert result.problems
    assert "s3cret" not in repr(result)
    assert "5333" not in repr(result)


def test_no_repr_shows_a_secret() -> None:
    assert "s3cret" not in repr(read("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: s3cret}\n"))


def test_the_number_of_problems_is_bounded_and_errors_come_before_warnings() -> None:
    """Twenty thousand faults take no minutes and fill no message."""
    fields = ", ".join(f"restartPolicx{number}: 1" for number in range(5000))
    labels = ", ".join(f"l{number}: '-{number}'" for number in range(5000))
    result = read(f"{HEAD}metadata: {{name: a, labels: {{{labels}}}}}\nspec: {{{fields}, containers: [5]}}\n")
    assert len(result.problems) == MAX_PROBLEMS + 1
    assert all(problem.is_error for problem in result.problems)
    assert result.problems[-1].message == "9951 more problems are not shown"


def test_the_number_of_problems_of_a_file_is_bounded() -> None:
    result = read("a: [\n---\n" * 500)
    assert len(result.problems) == MAX_FILE_PROBLEMS + 1
    assert result.problems[-1].message == "300 more problems are not shown"
    assert result.unread == 500


@pytest.mark.parametrize(
    "text",
    ["{}\n" * 6000, json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [0] * 6000})],
)
def test_the_number_of_objects_of_a_file_is_bounded(text: str) -> None:
    result = read(text)
    assert result.unread
    assert "more than 5000" in "\n".join(texts(result)) or len(result.problems) == MAX_FILE_PROBLEMS + 1
