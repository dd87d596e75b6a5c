"""The kernel's own word on an OOM kill, for when the engine has missed it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from services.podworker.adapters.docker_observe import Observer
from services.podworker.adapters.kernel_log import was_oom_killed
from services.podworker.core.model import RuntimeContainer
from shared.kube import names
from tests.contract.runtime.engines import DockerEngine


def test_a_kernel_log_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    assert not was_oom_killed("f" * 64, tmp_path / "none")


@pytest.mark.docker
@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="the kernel log can't be read here")
@pytest.mark.parametrize(
    ("command", "is_killed"), [("x=a; while :; do x=$x$x; done", True), ("kill -9 $$; exit 137", False)]
)
async def test_an_oom_kill_that_the_engine_missed_is_seen(
    docker_engine: DockerEngine, monkeypatch: pytest.MonkeyPatch, command: str, is_killed: bool
) -> None:
    client = docker_engine.client
    labels = {
        names.LABEL_INSTANCE: docker_engine.instance,
        names.LABEL_POD_UID: "u",
        names.LABEL_CONTAINER_NAME: "c",
        names.LABEL_DOCKER_TYPE: names.TYPE_CONTAINER,
    }
    config = client.create_host_config(mem_limit="16m", memswap_limit="16m")
    id_ = client.create_container("busybox:1.36", ["sh", "-c", command], host_config=config, labels=labels)["Id"]
    client.start(id_)
    assert client.wait(id_)["StatusCode"] == 137
    inspect = client.inspect_container

    def without_the_flag(container: str) -> dict[str, Any]:
        found: dict[str, Any] = inspect(container)
        return {**found, "State": {**found["State"], "OOMKilled": False}}

    monkeypatch.setattr(client, "inspect_container", without_the_flag)
    seen = Observer(lambda uid: []).look(client, id_)
    assert seen is not None
    assert isinstance(seen.fact, RuntimeContainer)
    assert seen.fact.oom_killed is is_killed
