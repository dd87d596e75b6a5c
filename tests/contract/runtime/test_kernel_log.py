"""The kernel's own word on an OOM kill, for when the engine has missed it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from services.podworker.adapters.docker_observe import Observer
from services.podworker.adapters.kernel_log import is_oom_kill, was_oom_killed
from services.podworker.core.model import RuntimeContainer
from shared.kube import names
from tests.contract.runtime.engines import DockerEngine

ID = "fb7e25dfc6d5938945c4418675cb77b0f64f334d342d00cef19cf10672e3a847"
KILLED = (
    b"3,1234,29634668360,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=%s,mems_allowed=0,"
    b"oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/%s,task=sh,pid=30480,uid=0\n"
)


def test_the_victims_cgroup_tells_whose_kill_it_was() -> None:
    other = b"0" * 64
    assert is_oom_kill(KILLED % (ID.encode(), ID.encode()), ID.encode())
    assert not is_oom_kill(KILLED % (ID.encode(), other), ID.encode())
    assert not is_oom_kill(b"6,1,1,-;docker0: port 1 of " + ID.encode(), ID.encode())


def test_a_kernel_log_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    assert not was_oom_killed(ID, tmp_path / "none")


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
