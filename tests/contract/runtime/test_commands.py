"""Commands inside containers, for exec probes and hooks: one suite for Docker and for the model of it."""

from __future__ import annotations

import asyncio

import pytest

from services.podworker.ports import MAX_OUTPUT_BYTES, RuntimeRefused
from tests.contract.runtime.engines import SECRET_IN_A_FILE, DockerEngine, Engine, new_pod, run_pod
from tests.support.builders import a_container
from tests.support.eventually import eventually_async

WHILE_ONE_RUNS = 0.5
"""Seconds of patience with a command that doesn't end."""


async def a_container_of(engine: Engine) -> str:
    _, (container_id,) = await run_pod(engine, new_pod())
    return container_id


async def test_a_command_ends_with_its_exit_code_and_output(engine: Engine) -> None:
    container_id = await a_container_of(engine)
    said = await engine.commands.exec_sync(container_id, ["sh", "-c", "echo hello"], None)
    assert (said.exit_code, said.output) == (0, b"hello\n")
    failed = await engine.commands.exec_sync(container_id, ["sh", "-c", "exit 7"], 10)
    assert (failed.exit_code, failed.output) == (7, b"")


async def test_a_command_that_is_not_there_ends_with_the_engines_words(engine: Engine) -> None:
    container_id = await a_container_of(engine)
    result = await engine.commands.exec_sync(container_id, ["missing"], 10)
    assert result.exit_code in (126, 127)
    assert b"missing" in result.output


async def test_a_command_that_takes_too_long_has_no_exit_code(engine: Engine) -> None:
    container_id = await a_container_of(engine)
    result = await engine.commands.exec_sync(container_id, ["sleep", "3600"], WHILE_ONE_RUNS)
    assert result.exit_code is None


async def test_a_stopped_container_runs_no_command(engine: Engine) -> None:
    container_id = await a_container_of(engine)
    await engine.runtime.signal_container(container_id, "SIGKILL")

    async def refused() -> bool:
        try:
            await engine.commands.exec_sync(container_id, ["sh", "-c", "echo x"], 10)
        except RuntimeRefused as error:
            return "not running" in error.message
        return False

    await eventually_async(refused, within=10)


async def test_a_command_ends_with_its_container(engine: Engine) -> None:
    container_id = await a_container_of(engine)
    running = asyncio.create_task(engine.commands.exec_sync(container_id, ["sleep", "3600"], None))
    await asyncio.sleep(WHILE_ONE_RUNS)
    await engine.runtime.signal_container(container_id, "SIGKILL")
    result = await asyncio.wait_for(running, 30)
    assert result.exit_code == 137


def left(engine: DockerEngine, container_id: str, text: str) -> list[str]:
    """Commands of the container's live processes that hold the text."""
    return [row[-1] for row in engine.client.top(container_id)["Processes"] if text in row[-1]]


@pytest.mark.docker
async def test_a_command_that_takes_too_long_is_killed_with_its_children(docker_engine: DockerEngine) -> None:
    container_id = await a_container_of(docker_engine)
    script = "echo begun; sleep 3601 & sleep 3602; echo never"
    result = await docker_engine.commands.exec_sync(container_id, ["sh", "-c", script], WHILE_ONE_RUNS)
    assert (result.exit_code, result.output) == (None, b"begun\n")
    assert left(docker_engine, container_id, "sleep 360") == []


@pytest.mark.docker
@pytest.mark.parametrize("seconds", [0.0, 0.003, WHILE_ONE_RUNS])
async def test_a_command_whose_caller_is_cancelled_is_killed(docker_engine: DockerEngine, seconds: float) -> None:
    """Also when it was only about to start."""
    container_id = await a_container_of(docker_engine)
    running = asyncio.create_task(docker_engine.commands.exec_sync(container_id, ["sleep", "3603"], None))
    await asyncio.sleep(seconds)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await eventually_async(lambda: not left(docker_engine, container_id, "sleep 3603"), within=10)


@pytest.mark.docker
async def test_output_is_cut_and_both_streams_are_in_it(docker_engine: DockerEngine) -> None:
    container_id = await a_container_of(docker_engine)
    script = "echo out; echo err >&2; sleep 0.5; head -c 1000000 /dev/zero"  # the two streams have no order
    result = await docker_engine.commands.exec_sync(container_id, ["sh", "-c", script], 30)
    assert result.exit_code == 0
    assert len(result.output) == MAX_OUTPUT_BYTES
    assert b"out\n" in result.output and b"err\n" in result.output


@pytest.mark.docker
async def test_what_a_failed_command_wrote_shows_no_secret(docker_engine: DockerEngine) -> None:
    """It may become an event's text; what a command that succeeded wrote goes nowhere."""
    container_id = await a_container_of(docker_engine)
    script = f"echo pass={SECRET_IN_A_FILE}"
    failed = await docker_engine.commands.exec_sync(container_id, ["sh", "-c", f"{script}; exit 1"], 10)
    assert failed.output == b"pass=***\n"
    slow = await docker_engine.commands.exec_sync(container_id, ["sh", "-c", f"{script}; sleep 3600"], 1)
    assert slow.output == b"pass=***\n"


async def test_a_command_that_closes_its_output_is_waited_for(docker_engine: DockerEngine) -> None:
    container_id = await a_container_of(docker_engine)
    result = await docker_engine.commands.exec_sync(container_id, ["sh", "-c", "exec >&- 2>&-; sleep 1; exit 5"], 30)
    assert result.exit_code == 5


@pytest.mark.docker
async def test_many_commands_that_hang_hold_no_other_up(docker_engine: DockerEngine) -> None:
    """They hold no thread and, once started, no place among the starts."""
    container_id = await a_container_of(docker_engine)
    hanging = [
        asyncio.create_task(docker_engine.commands.exec_sync(container_id, ["sleep", "3604"], None)) for _ in range(12)
    ]
    result = await docker_engine.commands.exec_sync(container_id, ["sh", "-c", "echo through"], 30)
    assert result.output == b"through\n"
    for one in hanging:
        one.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)
    await eventually_async(lambda: not left(docker_engine, container_id, "sleep 3604"), within=15)


@pytest.mark.docker
async def test_a_pre_stop_hook_survives_in_the_engines_labels(docker_engine: DockerEngine) -> None:
    hook = {"preStop": {"httpGet": {"port": "web", "path": "/bye"}}}
    pod = new_pod(a_container(lifecycle=hook, ports=[{"name": "web", "containerPort": 8080}]))
    await run_pod(docker_engine, pod)
    shown = await docker_engine.runtime.pod(pod.metadata.uid)
    assert shown is not None
    handler = shown.containers[0].pre_stop
    assert handler is not None and handler.http_get is not None
    assert (handler.http_get.port, handler.http_get.path) == (8080, "/bye")
