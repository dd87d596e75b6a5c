"""Docker's JSON and our types: the state map, keys that tell a change, names and addresses."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.adapters.docker_translate import (
    conflicting_id,
    container_log_link,
    image_info,
    listed,
    observed,
    runtime_pods,
)
from services.podworker.core.model import RuntimeContainer, RuntimeSandbox
from shared.kube import names

ZERO = "0001-01-01T00:00:00Z"
START, FINISH = "2026-12-01T00:00:01.123456789Z", "2026-12-01T00:00:02Z"


def an_inspect(
    attempt: int = 0, state: dict[str, Any] | None = None, labels: dict[str, str] | None = None
) -> dict[str, Any]:
    return {
        "Id": f"id-{attempt}",
        "Name": f"/k8s_c_web_default_u1_{attempt}",
        "Created": "2026-12-01T00:00:00.5Z",
        "Image": "sha256:abc",
        "State": {"Status": "running", "Running": True, "StartedAt": START, "FinishedAt": ZERO, **(state or {})},
        "Config": {
            "Image": "busybox:1.36",
            "Labels": {
                names.LABEL_POD_UID: "u1",
                names.LABEL_POD_NAME: "web",
                names.LABEL_POD_NAMESPACE: "default",
                names.LABEL_CONTAINER_NAME: "c",
                names.LABEL_DOCKER_TYPE: names.TYPE_CONTAINER,
                names.ANNOTATION_RESTART_COUNT: str(attempt),
                **(labels or {}),
            },
        },
        "HostConfig": {},
        "NetworkSettings": {},
    }


def a_fact(inspect: dict[str, Any], image: dict[str, Any] | None = None) -> RuntimeContainer:
    seen = observed(inspect, image)
    assert seen is not None and isinstance(seen.fact, RuntimeContainer)
    return seen.fact


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ({"Status": "running", "Running": True}, "running"),
        ({"Status": "paused", "Running": True, "Paused": True}, "running"),
        ({"Status": "exited", "Running": False, "FinishedAt": FINISH}, "exited"),
        ({"Status": "dead", "Running": False, "FinishedAt": FINISH}, "exited"),
        ({"Status": "created", "Running": False, "StartedAt": ZERO}, "created"),
        ({"Status": "created", "Running": False, "StartedAt": ZERO, "ExitCode": 127}, "exited"),
    ],
)
def test_states_are_dockershims(state: dict[str, Any], shown: str) -> None:
    assert a_fact(an_inspect(state=state)).state == shown


def test_a_start_that_failed_is_a_container_that_cannot_run() -> None:
    state = {"Status": "created", "Running": False, "StartedAt": ZERO, "ExitCode": 127, "Error": "no such file"}
    fact = a_fact(an_inspect(state=state))
    assert (fact.cannot_run, fact.exit_code, fact.error, fact.finished_at) == (True, 127, "no such file", None)


def test_a_restarted_container_shows_no_end_of_its_former_life() -> None:
    assert a_fact(an_inspect(state={"FinishedAt": FINISH})).finished_at is None


def test_an_end_never_lies_before_its_start() -> None:
    """The engine stamps a start after the process runs."""
    state = {"Status": "exited", "Running": False, "FinishedAt": "2026-12-01T00:00:01.1Z"}
    fact = a_fact(an_inspect(state=state))
    assert fact.finished_at == fact.started_at


@pytest.mark.parametrize(
    ("image", "name", "image_id"),
    [
        (None, "busybox:1.36", "docker://sha256:abc"),
        ({"RepoTags": [], "RepoDigests": []}, "busybox:1.36", "docker://sha256:abc"),
        ({"RepoTags": ["bb:1", "busybox:1.36"], "RepoDigests": None}, "bb:1", "docker://sha256:abc"),
        (
            {"RepoTags": ["busybox:1.36"], "RepoDigests": ["busybox@sha256:d"]},
            "busybox:1.36",
            "docker-pullable://busybox@sha256:d",
        ),
    ],
)
def test_the_image_is_its_first_tag_and_its_id_is_pullable_where_it_was_pulled(
    image: dict[str, Any] | None, name: str, image_id: str
) -> None:
    fact = a_fact(an_inspect(), image)
    assert (fact.image, fact.image_id) == (name, image_id)


@pytest.mark.parametrize(
    ("state", "status", "inspected"),
    [
        ("running", "Up 3 minutes", {"Status": "running"}),
        ("running", "Up 2 seconds (healthy)", {"Status": "running"}),
        ("exited", "Exited (137) 2 hours ago", {"Status": "exited", "ExitCode": 137, "FinishedAt": FINISH}),
        ("created", "Created", {"Status": "created", "ExitCode": 127}),
    ],
)
def test_a_list_entry_and_an_inspect_of_one_state_have_one_key(
    state: str, status: str, inspected: dict[str, Any]
) -> None:
    """And time that passes changes nothing in it."""
    entry = listed({"Id": "x", "State": state, "Status": status, "Labels": {names.LABEL_POD_UID: "u1"}})
    seen = observed(an_inspect(state=inspected), None)
    assert seen is not None and entry.key == seen.key


def test_a_container_without_a_pods_uid_is_nobodys() -> None:
    assert observed(an_inspect(labels={names.LABEL_POD_UID: ""}), None) is None


def test_a_sandbox_has_its_attempt_from_its_name_and_addresses_from_its_network() -> None:
    inspect = an_inspect(labels={names.LABEL_DOCKER_TYPE: names.TYPE_SANDBOX})
    inspect["Name"] = "/k8s_POD_web_default_u1_3_deadbeef"
    inspect["NetworkSettings"] = {
        "IPAddress": "",
        "Networks": {"mine": {"IPAddress": "10.1.0.2", "GlobalIPv6Address": "fd00::2"}},
    }
    seen = observed(inspect, None)
    assert seen is not None and isinstance(seen.fact, RuntimeSandbox)
    assert (seen.fact.attempt, seen.fact.ready, seen.fact.ips) == (3, True, ("10.1.0.2", "fd00::2"))


def test_a_pod_is_grouped_newest_first_with_the_grace_of_its_labels() -> None:
    found = [observed(an_inspect(n, labels={names.ANNOTATION_GRACE: "7"}), None) for n in (0, 2, 1)]
    pods = runtime_pods(one for one in found if one is not None)
    assert [container.attempt for container in pods["u1"].containers] == [2, 1, 0]
    assert (pods["u1"].namespace, pods["u1"].name, pods["u1"].grace_seconds) == ("default", "web", 7)


def test_labels_that_are_no_numbers_do_no_harm() -> None:
    """Another version may have written them."""
    seen = observed(an_inspect(labels={names.ANNOTATION_RESTART_COUNT: "x", names.ANNOTATION_GRACE: ""}), None)
    assert seen is not None and seen.fact.attempt == 0
    assert runtime_pods([seen])["u1"].grace_seconds == 30


def test_the_holder_of_a_name_is_in_the_refusal() -> None:
    holder = "a" * 64
    text = f'Conflict. The container name "/k8s_c" is already in use by container "{holder}". You have to remove'
    assert conflicting_id(text) == holder
    assert conflicting_id("removal of container x is already in progress") is None


def test_a_log_links_name_is_cut_at_what_a_file_name_may_have() -> None:
    labels = {
        names.LABEL_POD_NAME: "p" * 200,
        names.LABEL_POD_NAMESPACE: "default",
        names.LABEL_CONTAINER_NAME: "c",
    }
    name = container_log_link(labels, "f" * 64)
    assert len(name) == 255 and name.endswith("f.log")


def test_an_untagged_image_has_no_names() -> None:
    info = image_info({"Id": "sha256:1", "RepoTags": ["<none>:<none>"], "RepoDigests": ["<none>@<none>"], "Size": 5})
    assert (info.names, info.size, info.user) == ((), 5, "")
