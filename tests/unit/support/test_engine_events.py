"""Docker's events become a record as the model engine keeps it."""

from __future__ import annotations

import json

from shared.kube import names
from tests.support.engine_events import as_record


def event(at: int, action: str, container: str, **labels: str) -> str:
    attributes = {
        names.LABEL_DOCKER_TYPE: names.TYPE_CONTAINER,
        names.LABEL_POD_NAMESPACE: "default",
        names.LABEL_POD_NAME: "a-n1",
        names.LABEL_POD_UID: "u1",
        names.LABEL_CONTAINER_NAME: "v7",
        **labels,
    }
    line = {"timeNano": at, "Action": action, "id": container, "Actor": {"ID": container, "Attributes": attributes}}
    return json.dumps(line) + "\n"


def test_a_start_and_a_death_become_lines_with_the_version_from_the_name() -> None:
    lines = [event(1, "start", "c1"), event(5, "die", "c1")]
    assert as_record(lines) == "1 + default/a-n1 u1 c1 7\n5 - default/a-n1 u1 c1 7\n"


def test_sandboxes_and_deaths_without_a_start_are_left_out() -> None:
    sandbox = event(1, "start", "s1", **{names.LABEL_DOCKER_TYPE: names.TYPE_SANDBOX})
    assert as_record([sandbox, event(2, "die", "c9")]) == ""


def test_a_line_that_is_still_being_written_is_left_out() -> None:
    assert as_record([event(1, "start", "c1")[:-1]]) == ""
