"""PODBUS_* variables: what is told of wrong ones, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.runtime.settings import Settings, SettingsError, load_settings


def problems(tmp_path: Path, **env: str) -> list[str]:
    try:
        load_settings({"PODBUS_DATA": str(tmp_path), "PODBUS_NODE_NAME": "n1", **env})
    except SettingsError as error:
        return error.problems
    return []


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("PODBUS_PORT", "0", "'0' is not a whole number from 1 to 65535"),
        ("PODBUS_WORKERS", "65", "'65' is not a whole number from 1 to 64"),
        ("PODBUS_STRICT", "maybe", "'maybe' is neither true nor false"),
        ("PODBUS_LOG_LEVEL", "loud", "'loud' is none of DEBUG, INFO, WARNING, ERROR"),
        ("PODBUS_NODE_IP", "banana", "'banana' is not an IP address"),
        ("PODBUS_DATA", "data", "'data' is not an absolute path"),
        ("PODBUS_MANIFESTS", "pods", "'pods' is not an absolute path"),
        ("PODBUS_POD_LOGS", "./logs", "'./logs' is not an absolute path"),
    ],
)
def test_a_wrong_value_is_told_with_its_variable(tmp_path: Path, key: str, value: str, told: str) -> None:
    assert problems(tmp_path, **{key: value}) == [f"{key}: {told}"]


def test_all_wrong_values_are_told_together(tmp_path: Path) -> None:
    told = problems(tmp_path, PODBUS_PORT="x", PODBUS_NODE_IP="x", PODBUS_POD_LOGS="x")
    assert [text.partition(":")[0] for text in told] == ["PODBUS_PORT", "PODBUS_NODE_IP", "PODBUS_POD_LOGS"]


def test_values_are_taken_as_they_are_meant(tmp_path: Path) -> None:
    env = {"PODBUS_NODE_IP": "::1", "PODBUS_LOG_LEVEL": "debug", "PODBUS_STRICT": "yes", "PODBUS_NODE_NAME": "N1"}
    found = load_settings({"PODBUS_DATA": str(tmp_path), **env})
    assert (found.node_ip, found.log_level, found.strict, found.node_name) == ("::1", "DEBUG", True, "n1")


def test_without_variables_the_defaults_hold(tmp_path: Path) -> None:
    found = load_settings({"PODBUS_DATA": str(tmp_path), "PODBUS_NODE_NAME": "n1"})
    assert found == Settings(data=tmp_path, node_name="n1")


def test_the_api_and_healthz_can_not_have_one_port(tmp_path: Path) -> None:
    assert problems(tmp_path, PODBUS_PORT="10248") == ["healthzPort: 10248 is the API's port too; 0 turns /healthz off"]


def test_one_port_on_two_addresses_is_no_fault(tmp_path: Path) -> None:
    config = tmp_path / "kubelet.yaml"
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "address: 127.0.0.2\nhealthzBindAddress: 127.0.0.1\n"
    )
    assert problems(tmp_path, PODBUS_CONFIG=str(config), PODBUS_PORT="10248") == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("PODBUS_MANIFEST", "; did you mean PODBUS_MANIFESTS?"),
        ("PODBUS_LOGLEVEL", "; did you mean PODBUS_LOG_LEVEL?"),
        ("PODBUS_COLOUR", ""),
    ],
)
def test_a_variable_that_nobody_knows_is_told_with_the_nearest_one(tmp_path: Path, name: str, told: str) -> None:
    found = load_settings({"PODBUS_DATA": str(tmp_path), "PODBUS_NODE_NAME": "n1", name: "x"})
    assert found.config_warnings == (f"{name}: unknown variable, it has no effect{told}",)


def test_variables_of_others_and_of_tests_are_left_alone(tmp_path: Path) -> None:
    env = {"PATH": "/bin", "PODBUS_TEST_ENGINE": "1", "PODBUS_READY_FD": "3", "XPODBUS_A": "1"}
    assert load_settings({"PODBUS_DATA": str(tmp_path), "PODBUS_NODE_NAME": "n1", **env}).config_warnings == ()
