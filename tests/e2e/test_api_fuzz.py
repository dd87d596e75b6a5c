"""Requests of every kind, made from a node's own OpenAPI document: nothing answers 500 but what the kubelet's API
prescribes, every answer is read to its end, and the node is as well afterwards as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, is_ready, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.timeout(600)]

PRESCRIBED = re.compile(
    rb"Upgrade request required\n"  # exec, attach and port-forward by a request that isn't an upgrade
    rb"|Internal Error: .*"  # /stats/summary that can't be read, or fails
    rb"|command '.*' exited with \d+.*"  # run: a command that fails
    rb"|container .* not found in pod .*"  # run and attach
    rb"|checkpointing of .* failed .*",
    re.DOTALL,
)
"""Bodies of a 500 that are as they should be."""
REAL = {
    "namespace": "default",
    "podNamespace": "default",
    "pod": "target-n1",
    "podID": "target-n1",
    "container": "main",
}
"""Values of path parameters that lead somewhere."""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory) / "0")
        try:
            made.start()
            made.apply("target.yaml", sleeper("target"))
            eventually(lambda: is_ready(made.pod("target")), within=60)
            yield made
        finally:
            made.close()


def fuzz(node: Node, examples: int) -> None:
    document: dict[str, Any] = node.json("/podbus/openapi.json")
    schema = schemathesis.openapi.from_dict(document)
    base, authority = f"https://127.0.0.1:{node.port}", str(node.data / "pki" / "ca.crt")
    with requests.Session() as session:
        session.trust_env = False  # no proxy, no other authorities
        session.headers["Authorization"] = f"Bearer {node.token}"
        asked = 0
        for found in schema.get_all_operations():
            assert isinstance(found, Ok), found
            operation = found.ok()
            asked += 1

            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(), is_real=st.booleans())
            def one(case: schemathesis.Case[Any], is_real: bool) -> None:
                if is_real:
                    case.path_parameters.update({k: v for k, v in REAL.items() if k in case.path_parameters})
                case.query = {k: v for k, v in (case.query or {}).items() if k != "follow"}
                answer = case.call(base_url=base, session=session, verify=authority, timeout=60, allow_redirects=False)
                fine = answer.status_code < 500 or answer.status_code == 501 or PRESCRIBED.fullmatch(answer.content)
                assert fine, f"{case.as_curl_command()}\n{answer.status_code} {answer.content[:300]!r}"

            one()
    assert asked >= 25
    assert node.get("/healthz")[0] == 200
    assert is_ready(node.pod("target"))
    assert "Traceback" not in node.log()


def test_no_request_of_the_document_is_a_500_that_is_not_prescribed(node: Node) -> None:
    fuzz(node, 50)


@pytest.mark.long
def test_nor_is_any_of_many_more(node: Node) -> None:
    fuzz(node, 1000)
