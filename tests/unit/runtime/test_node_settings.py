"""What may be configured of the Node at an API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.kube.node_labels import node_labels, parse_node_labels
from shared.runtime.config import config_document
from shared.runtime.config_reader import load_config
from shared.runtime.settings import SettingsError, load_settings

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def config_errors(tmp_path: Path, body: str) -> list[str]:
    file = tmp_path / "kubelet.yaml"
    file.write_text(HEAD + body)
    return [text.removeprefix(f"{file}:") for text in load_config(file)[1]]


@pytest.mark.parametrize(
    "label",
    [
        "node.kubernetes.io/x=y",
        "kubernetes.io/arch=arm64",
        "a.kubelet.kubernetes.io/x=y",
        "topology.kubernetes.io/zone=",
        "disk=ssd",
        "example.com/rack=7",
        "notkubernetes.io/x=y",
    ],
)
def test_a_label_that_a_node_may_give_itself_is_taken(label: str) -> None:
    """Node case 9."""
    assert parse_node_labels(label) == (dict([label.split("=")]), [])


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("node-role.kubernetes.io/x=y", "is reserved"),
        ("kubernetes.io/x=y", "is reserved"),
        ("pods.k8s.io/x=y", "is reserved"),
        ("disk", "must be name=value"),
        ("-=a", "name part must consist of"),
        ("a=b c", "a valid label must be"),
    ],
)
def test_a_label_that_a_node_may_not_give_itself_is_refused(label: str, text: str) -> None:
    """Node case 9: one of them spoils all."""
    labels, errors = parse_node_labels(f"disk=ssd,{label}")
    assert labels == {} and repr(label) in errors[0] and text in errors[0]


def test_a_refused_label_is_told_with_its_variable(tmp_path: Path) -> None:
    """Node case 9."""
    environment = {"PODBUS_DATA": str(tmp_path), "PODBUS_NODE_LABELS": "node-role.kubernetes.io/x=y"}
    with pytest.raises(SettingsError, match=r"^PODBUS_NODE_LABELS: 'node-role.kubernetes.io/x=y': is reserved"):
        load_settings(environment)


def test_a_node_is_named_in_small_letters(tmp_path: Path) -> None:
    """Node case 8: and so is its label kubernetes.io/hostname."""
    name = load_settings({"PODBUS_DATA": str(tmp_path), "PODBUS_NODE_NAME": " Node-A "}).node_name
    assert name == "node-a" and node_labels(name, "amd64")["kubernetes.io/hostname"] == "node-a"


def test_labels_are_read_from_the_environment(tmp_path: Path) -> None:
    environment = {"PODBUS_DATA": str(tmp_path), "PODBUS_NODE_LABELS": " disk=ssd, rack=7,"}
    assert load_settings(environment).node_labels == {"disk": "ssd", "rack": "7"}


def test_what_a_file_says_of_the_node_is_read_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.yaml"
    file.write_text(
        HEAD + "nodeStatusReportFrequency: 1m\nnodeLeaseDurationSeconds: 20\nnodeStatusMaxImages: -1\n"
        "registerNode: false\nproviderID: p://1\nregisterWithTaints: [{key: a/b, value: c, effect: NoExecute}]\n"
    )
    config, errors, warnings = load_config(file)
    assert (errors, warnings) == ([], [])
    assert (config.node_report_seconds, config.node_lease_duration, config.node_max_images) == (60.0, 20, -1)
    assert (config.register_node, config.provider_id) == (False, "p://1")
    taints = [{"key": "a/b", "value": "c", "effect": "NoExecute"}]
    assert list(config.register_with_taints) == taints == config_document(config)["registerWithTaints"]


def test_a_report_is_as_frequent_as_the_computation_that_alone_is_configured(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.yaml"
    file.write_text(HEAD + "nodeStatusUpdateFrequency: 4s\n")
    assert load_config(file)[0].node_report_seconds == 4.0


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("registerWithTaints: {}\n", "must be a list, got an object"),
        ("registerWithTaints: [a]\n", "[0]: must be an object, got a string"),
        ("registerWithTaints: [{key: a, effect: Never}]\n", "[0]: effect: must be one of NoSchedule"),
        ("registerWithTaints: [{key: '', effect: NoExecute}]\n", "[0]: key: name part must be non-empty"),
        ("registerWithTaints: [{key: a, effect: NoExecute, more: b}]\n", "[0]: more: unknown field"),
        ("nodeStatusMaxImages: -2\n", "must be from -1"),
    ],
)
def test_a_wrong_value_is_told_with_its_place(tmp_path: Path, body: str, told: str) -> None:
    assert any(told in text for text in config_errors(tmp_path, body))
