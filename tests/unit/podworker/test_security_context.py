"""Security contexts: what the engine is asked for, and what is refused (lifecycle 7.4)."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.adapters.docker_translate import container_payload, sandbox_payload
from services.podworker.core.admission import NodeTraits
from services.podworker.core.container_config import container_config, sandbox_config
from services.podworker.core.demand import demand_of
from services.podworker.core.namespaces import container_namespaces, sandbox_namespaces
from services.podworker.core.security_context import (
    container_security,
    container_user,
    image_own_user,
    non_root_fault,
    sandbox_user,
    supplementary_groups,
)
from shared.kube.pod import Pod
from tests.support.builders import UID, a_container, a_node, a_pod

WHERE = f'(pod: "p-node1_default({UID})", container: c)'


def given(pod: dict[str, Any] | None = None, container: dict[str, Any] | None = None, **spec: Any) -> Pod:
    return a_pod(a_container(securityContext=container or {}), securityContext=pod or {}, **spec)


def host_config(pod: Pod, seccomp: str = "") -> dict[str, Any]:
    config = container_config(pod, pod.spec.containers[0], a_node(), 0, sandbox_id="s", source="file")
    found: dict[str, Any] = container_payload(config, 0, seccomp)["HostConfig"]
    return found


@pytest.mark.parametrize(
    ("pod", "container", "image_user", "fault"),
    [
        ({}, {}, "", ""),
        ({}, {"runAsNonRoot": True}, "", f"container has runAsNonRoot and image will run as root {WHERE}"),
        ({}, {"runAsNonRoot": True}, "0:5", f"container has runAsNonRoot and image will run as root {WHERE}"),
        ({"runAsNonRoot": True}, {}, "", f"container has runAsNonRoot and image will run as root {WHERE}"),
        ({"runAsNonRoot": True}, {"runAsNonRoot": False}, "", ""),
        ({"runAsNonRoot": True}, {}, "1000:0", ""),
        ({"runAsNonRoot": True, "runAsUser": 0}, {}, "1000", f"container's runAsUser breaks non-root policy {WHERE}"),
        ({"runAsNonRoot": True, "runAsUser": 0}, {"runAsUser": 7}, "", ""),
        (
            {"runAsUser": 7},
            {"runAsNonRoot": True, "runAsUser": 0},
            "",
            f"container's runAsUser breaks non-root policy {WHERE}",
        ),
        (
            {"runAsNonRoot": True},
            {},
            "nginx:nginx",
            "container has runAsNonRoot and image has non-numeric user (nginx), cannot verify user is non-root "
            + WHERE,
        ),
    ],
)
def test_who_must_not_be_root_is_not_started_as_root(
    pod: dict[str, Any], container: dict[str, Any], image_user: str, fault: str
) -> None:
    """N01, a15"""
    made = given(pod, container)
    assert non_root_fault(made, made.spec.containers[0], image_user) == fault


@pytest.mark.parametrize(
    ("pod", "container", "image_user", "user"),
    [
        ({}, {}, "", "0"),
        ({}, {}, "nginx:web", "nginx"),
        ({"runAsUser": 1000}, {}, "5", "1000"),
        ({"runAsUser": 1000, "runAsGroup": 3000}, {}, "", "1000:3000"),
        ({"runAsUser": 1000, "runAsGroup": 3000}, {"runAsUser": 0}, "", "0:3000"),
        ({"runAsUser": 1000}, {"runAsGroup": 0}, "", "1000:0"),
        ({"runAsGroup": 3000}, {}, "nginx", "nginx:3000"),
        ({"runAsGroup": 3000}, {}, "", "0:3000"),
    ],
)
def test_the_containers_user_and_group_go_before_the_pods_and_those_before_the_images(
    pod: dict[str, Any], container: dict[str, Any], image_user: str, user: str
) -> None:
    """N03"""
    made = given(pod, container)
    assert container_user(made, made.spec.containers[0], image_user) == user


@pytest.mark.parametrize(
    ("image_user", "expected"),
    [("", "0"), ("1000", "1000"), ("1000:2000", "1000"), ("nginx", "nginx"), ("nginx:nginx", "nginx")],
)
def test_an_images_user_is_taken_without_its_group(image_user: str, expected: str) -> None:
    assert image_own_user(image_user) == expected


@pytest.mark.parametrize(
    ("pod", "user"),
    [({}, ""), ({"runAsUser": 1000}, "1000"), ({"runAsUser": 0, "runAsGroup": 0}, "0:0"), ({"runAsGroup": 3000}, "")],
)
def test_the_sandbox_runs_as_the_pods_user(pod: dict[str, Any], user: str) -> None:
    assert sandbox_user(given(pod)) == user


def test_every_process_is_in_the_volumes_group_and_then_in_the_others() -> None:
    """N03, V13, a14"""
    pod = given({"fsGroup": 2000, "supplementalGroups": [4000, 0]})
    assert supplementary_groups(pod) == ("2000", "4000", "0")
    assert host_config(pod)["GroupAdd"] == ["2000", "4000", "0"]
    assert sandbox_payload(sandbox_config(pod, a_node(), 0), 0)["HostConfig"]["GroupAdd"] == ["2000", "4000", "0"]
    assert supplementary_groups(given()) == ()


def test_capabilities_are_named_as_the_engine_does() -> None:
    """N04"""
    found = host_config(given(container={"capabilities": {"add": ["NET_ADMIN", "CAP_CHOWN"], "drop": ["ALL"]}}))
    assert (found["CapAdd"], found["CapDrop"]) == (["NET_ADMIN", "CHOWN"], ["ALL"])


def test_privileged_and_a_read_only_root_are_asked_for() -> None:
    """N04, N06: where the engine can't do it, it says so at the start."""
    found = host_config(given(container={"privileged": True, "readOnlyRootFilesystem": True}))
    assert (found["Privileged"], found["ReadonlyRootfs"]) == (True, True)
    found = host_config(given())
    assert (found["Privileged"], found["ReadonlyRootfs"]) == (False, False)


@pytest.mark.parametrize(
    ("pod", "container", "options"),
    [
        ({}, {}, ["seccomp=unconfined"]),
        ({}, {"allowPrivilegeEscalation": True}, ["seccomp=unconfined"]),
        ({}, {"allowPrivilegeEscalation": False}, ["no-new-privileges", "seccomp=unconfined"]),
        ({"seccompProfile": {"type": "RuntimeDefault"}}, {}, []),
        (
            {"seccompProfile": {"type": "RuntimeDefault"}},
            {"seccompProfile": {"type": "Unconfined"}},
            ["seccomp=unconfined"],
        ),
        ({}, {"appArmorProfile": {"type": "RuntimeDefault"}}, ["seccomp=unconfined"]),
        ({"appArmorProfile": {"type": "Unconfined"}}, {}, ["seccomp=unconfined", "apparmor=unconfined"]),
        (
            {"appArmorProfile": {"type": "Unconfined"}},
            {"appArmorProfile": {"type": "Localhost", "localhostProfile": "my-profile"}},
            ["seccomp=unconfined", "apparmor=my-profile"],
        ),
    ],
)
def test_profiles_become_options_of_the_engine(
    pod: dict[str, Any], container: dict[str, Any], options: list[str]
) -> None:
    assert host_config(given(pod, container))["SecurityOpt"] == options


def test_a_local_seccomp_profile_is_a_file_of_the_data_directory_and_its_text_goes_to_the_engine() -> None:
    pod = given({"seccompProfile": {"type": "Localhost", "localhostProfile": "a/p.json"}})
    security = container_security(pod, pod.spec.containers[0], a_node())
    assert (security.seccomp_file, security.options) == ("/data/seccomp/a/p.json", ())
    assert host_config(pod, '{"x":1}')["SecurityOpt"] == ['seccomp={"x":1}']


def test_a_default_of_the_node_stands_in_for_no_profile_only() -> None:
    node = a_node(seccomp_default=True)
    bare, unconfined = given(), given({"seccompProfile": {"type": "Unconfined"}})
    assert container_security(bare, bare.spec.containers[0], node).options == ()
    assert container_security(unconfined, unconfined.spec.containers[0], node).options == ("seccomp=unconfined",)


def test_the_sandbox_keeps_the_engines_default_profile() -> None:
    pod = given({"seccompProfile": {"type": "Unconfined"}}, {"privileged": True})
    found = sandbox_payload(sandbox_config(pod, a_node(), 0), 0)["HostConfig"]
    assert found["SecurityOpt"] == ["no-new-privileges"]
    assert "Privileged" not in found


@pytest.mark.parametrize(
    ("pod", "reason", "message"),
    [
        (
            given({"supplementalGroupsPolicy": "Strict"}),
            "SupplementalGroupsPolicyNotSupported",
            "SupplementalGroupsPolicy=Strict is not supported in this node",
        ),
        (
            given(container={"appArmorProfile": {"type": "RuntimeDefault"}}),
            "AppArmor",
            "Cannot enforce AppArmor: AppArmor is not enabled on the host",
        ),
        (
            given({"appArmorProfile": {"type": "Localhost", "localhostProfile": "p"}}),
            "AppArmor",
            "Cannot enforce AppArmor: AppArmor is not enabled on the host",
        ),
        (
            a_pod(annotations={"container.apparmor.security.beta.kubernetes.io/c": "localhost/p"}),
            "AppArmor",
            "Cannot enforce AppArmor: AppArmor is not enabled on the host",
        ),
    ],
)
def test_what_the_node_cannot_enforce_is_turned_down(pod: Pod, reason: str, message: str) -> None:
    refused = demand_of(pod).refused
    assert refused is not None
    assert (refused.reason, refused.message) == (reason, message)


@pytest.mark.parametrize(
    "pod",
    [
        given({"supplementalGroupsPolicy": "Merge", "appArmorProfile": {"type": "Unconfined"}}),
        given({"appArmorProfile": {"type": "RuntimeDefault"}}, {"appArmorProfile": {"type": "Unconfined"}}),
        a_pod(annotations={"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}),
        given(),
    ],
)
def test_unconfined_needs_no_app_armor(pod: Pod) -> None:
    assert demand_of(pod).refused is None


def test_a_node_with_app_armor_takes_its_profiles() -> None:
    assert (
        demand_of(given({"appArmorProfile": {"type": "RuntimeDefault"}}), NodeTraits(has_app_armor=True)).refused
        is None
    )


@pytest.mark.parametrize(
    ("spec", "sandbox", "container"),
    [
        ({}, ("default", "shareable", "", ""), ("container:s", "container:s", "", "")),
        ({"hostNetwork": True}, ("host", "shareable", "", "host"), ("container:s", "container:s", "", "host")),
        ({"hostIPC": True}, ("default", "host", "", ""), ("container:s", "container:s", "", "")),
        ({"hostPID": True}, ("default", "shareable", "host", ""), ("container:s", "container:s", "host", "")),
        (
            {"shareProcessNamespace": True},
            ("default", "shareable", "", ""),
            ("container:s", "container:s", "container:s", ""),
        ),
    ],
)
def test_namespaces_are_the_sandboxes_or_the_hosts(
    spec: dict[str, Any], sandbox: tuple[str, ...], container: tuple[str, ...]
) -> None:
    """N09, a18, a19"""
    pod = a_pod(**spec)
    of_sandbox, own = sandbox_namespaces(pod, a_node()), container_namespaces(pod, "s")
    assert (of_sandbox.network, of_sandbox.ipc, of_sandbox.pid, of_sandbox.uts) == sandbox
    assert (own.network, own.ipc, own.pid, own.uts) == container
    found = host_config(pod)
    assert (found["NetworkMode"], found["IpcMode"], found["PidMode"], found["UTSMode"]) == container
