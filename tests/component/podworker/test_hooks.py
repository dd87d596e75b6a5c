"""Hooks beside their pod's task: the model engine, a real pods.db, a real http server; workers that die."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cli.db import db_upgrade
from services.podworker.adapters.network_sockets import SocketNetwork
from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.core.model import PodMemory
from services.podworker.core.plan import HookRun
from services.podworker.core.state import begin_termination
from services.podworker.handlers import hooks
from services.podworker.handlers.hooks import HookRunner, PodHooks
from services.podworker.handlers.pod_task import PodTask
from services.podworker.ports import ExecResult, RuntimeUnavailable, StoredPod
from shared.kube.pod import ExecAction, Handler, HTTPGetAction, HTTPHeader, TCPSocketAction
from tests.support.builders import UID, a_container, a_pod
from tests.support.eventually import eventually_async
from tests.support.model_runtime import ModelContainer, ModelRuntime
from tests.support.pod_tasks import a_task, withdraw

HANGS = {"exec": {"command": ["hang"]}}


@pytest.fixture
def engine() -> ModelRuntime:
    return ModelRuntime(time.time)


@pytest.fixture
def store(tmp_path: Path) -> SqlitePodStore:
    db_upgrade(tmp_path)
    return SqlitePodStore(tmp_path)


@asynccontextmanager
async def running(task: PodTask) -> AsyncIterator[PodTask]:
    """The task, until the block's end gives its slot away."""
    runs = asyncio.create_task(task.run())
    try:
        yield task
    finally:
        task.stop()
        await asyncio.wait_for(runs, 20)


def memory_of(task: PodTask) -> PodMemory:
    assert task.record.memory is not None
    return task.record.memory


def row(store: SqlitePodStore) -> StoredPod:
    stored = store.load(UID)
    assert stored is not None
    return stored


def only(engine: ModelRuntime) -> ModelContainer:
    (container,) = engine.containers.values()
    return container


def reasons(store: SqlitePodStore) -> list[str]:
    return [event.reason for event in store.pending_events(100)]


def has_hook(engine: ModelRuntime) -> bool:
    return len(engine.commands.running) == 1


async def test_a_deletion_during_a_post_start_hook_is_handled_at_once(
    engine: ModelRuntime, store: SqlitePodStore
) -> None:
    """W02: the hook would take for ever."""
    pod = a_pod(a_container("a", lifecycle={"postStart": HANGS}), a_container("b"))
    async with running(a_task(engine, store, pod)) as task:
        await eventually_async(lambda: has_hook(engine), within=10)
        assert [c.config.container for c in engine.containers.values()] == ["a"]
        withdraw(task)
        await eventually_async(lambda: not engine.containers, within=10)
    assert engine.commands.running == []


async def test_the_next_container_starts_when_the_hook_has_ended(engine: ModelRuntime, store: SqlitePodStore) -> None:
    """H01."""
    pod = a_pod(a_container("a", lifecycle={"postStart": HANGS}), a_container("b"))
    async with running(a_task(engine, store, pod)) as task:
        await eventually_async(lambda: has_hook(engine), within=10)
        engine.commands.end()
        await eventually_async(lambda: len(engine.containers) == 2, within=10)
        assert next(iter(memory_of(task).post_starts.values())).state == "done"


async def test_a_failed_post_start_stops_the_container(engine: ModelRuntime, store: SqlitePodStore) -> None:
    pod = a_pod(a_container(lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "exit 9"]}}}))
    async with running(a_task(engine, store, pod)) as task:
        await eventually_async(lambda: "FailedPostStartHook" in reasons(store), within=10)
        await eventually_async(lambda: memory_of(task).restarts.get("c") == 1, within=10)  # by its policy
        messages = {p.message for p in memory_of(task).post_starts.values() if p.state == "failed"}
    assert messages == {
        f'Exec lifecycle hook ([sh -c exit 9]) for Container "c" in Pod "p-node1_default({UID})" failed -'
        " error: command 'sh -c exit 9' exited with 9: , message: \"\""
    }


async def test_a_hook_whose_worker_dies_is_run_again_and_its_deadline_stays(
    engine: ModelRuntime, store: SqlitePodStore
) -> None:
    """kill -9: the row says "running", and nobody runs it."""
    pod = a_pod(a_container(lifecycle={"preStop": HANGS}))
    first = a_task(engine, store, pod)
    async with running(first) as task:
        await eventually_async(lambda: bool(engine.containers) and only(engine).is_running, within=10)
        withdraw(task)
        await eventually_async(lambda: has_hook(engine), within=10)
        at_its_death = row(store)
    (stop,) = at_its_death.memory.stops.values()
    assert (stop.pre_stop, stop.signalled_at) == ("running", None)
    store.save(at_its_death.memory, at_its_death.body)
    async with running(a_task(engine, store, pod, stored=row(store))) as task:
        withdraw(task)
        await eventually_async(lambda: has_hook(engine), within=10)
        assert engine.commands.started == [("hang",), ("hang",)]
        assert row(store).memory.stops == {only(engine).id: stop}
        assert only(engine).signals == []
        engine.commands.end()
        await eventually_async(lambda: not engine.containers, within=10)


async def test_one_that_gave_its_slot_away_has_ended_its_hook_and_stored_what_came_of_others(
    engine: ModelRuntime, store: SqlitePodStore
) -> None:
    async with running(a_task(engine, store, a_pod(a_container(lifecycle={"postStart": HANGS})))):
        await eventually_async(lambda: has_hook(engine), within=10)
    assert engine.commands.running == []
    assert [post_start.state for post_start in row(store).memory.post_starts.values()] == ["running"]


async def test_a_shortened_grace_gives_a_running_hook_up(engine: ModelRuntime, store: SqlitePodStore) -> None:
    """W09: first 600 s, then 1."""
    pod = a_pod(a_container(lifecycle={"preStop": HANGS}), terminationGracePeriodSeconds=600)
    async with running(a_task(engine, store, pod)) as task:
        await eventually_async(lambda: bool(engine.containers) and only(engine).is_running, within=10)
        withdraw(task)
        await eventually_async(lambda: has_hook(engine), within=10)
        task.record.memory = begin_termination(memory_of(task), time.time(), 1, "deleted")
        task.wake()
        await eventually_async(lambda: not engine.containers, within=10)
    assert engine.commands.running == []
    assert "FailedPreStopHook" in reasons(store)


# -- the kinds of hooks --------------------------------------------------------------------------------------


class HttpServer:
    """Answers each request with what it's told, and keeps what it was asked."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self.asked: list[bytes] = []
        self.port = 0

    async def __aenter__(self) -> HttpServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            first = await reader.readexactly(1)
            if first != b"\x16":  # else a TLS hello, and no more of it is read
                self.asked.append(first + await reader.readuntil(b"\r\n\r\n"))
            writer.write(self._answer)
            await writer.drain()
        writer.close()


def a_run(handler: Handler) -> HookRun:
    return HookRun(container_id="c-0", name="c", kind="preStop", handler=handler)


def http(port: int, **fields: object) -> HookRun:
    return a_run(Handler(http_get=HTTPGetAction(port=port, host="127.0.0.1", **fields)))  # type: ignore[arg-type]


@pytest.fixture
def runner(engine: ModelRuntime) -> HookRunner:
    return HookRunner(engine, SocketNetwork())


async def test_any_http_status_is_success(runner: HookRunner) -> None:
    """H06."""
    async with HttpServer(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n") as server:
        assert await runner.run(http(server.port, path="/bye"), "p") == ""
    assert server.asked[0].startswith(b"GET /bye HTTP/1.1\r\n")


async def test_https_falls_back_to_http_where_the_server_speaks_that(runner: HookRunner) -> None:
    async with HttpServer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as server:
        header = HTTPHeader(name="Authorization", value="secret")
        run = http(server.port, scheme="HTTPS", http_headers=[header])
        assert await runner.run(run, "p") == ""
    (asked,) = server.asked
    assert b"secret" not in asked


async def test_no_answer_is_a_failure(runner: HookRunner) -> None:
    async with HttpServer(b"") as server:
        pass
    error = await runner.run(http(server.port, path="/x"), "p_default(u)")
    assert error.startswith('HTTP lifecycle hook (/x) for Container "c" in Pod "p_default(u)" failed - error: ')


async def test_tcp_hooks_fail_when_they_are_run(runner: HookRunner) -> None:
    assert "invalid" in await runner.run(a_run(Handler(tcp_socket=TCPSocketAction(port=80))), "p")


async def test_a_command_in_a_container_that_is_gone_fails(runner: HookRunner) -> None:
    run = a_run(Handler(exec=ExecAction(command=["x"])))
    assert "is not running" in await runner.run(run, "p")


class Restarting(ModelRuntime):
    """The engine goes away in the middle of the first command."""

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float | None) -> ExecResult:
        self.commands.started.append(tuple(command))
        if len(self.commands.started) == 1:
            raise RuntimeUnavailable("the engine went away")
        return ExecResult(exit_code=0, output=b"")


async def test_a_command_that_the_engine_has_lost_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least once: what became of it can't be told."""
    monkeypatch.setattr(hooks, "RETRY_SECONDS", 0)
    engine = Restarting(time.time)
    run = a_run(Handler(exec=ExecAction(command=["x"])))
    assert await HookRunner(engine, SocketNetwork()).run(run, "p") == ""
    assert engine.commands.started == [("x",), ("x",)]


# -- the hooks of a pod --------------------------------------------------------------------------------------


async def test_a_hook_is_started_once_and_its_end_taken_once() -> None:
    woken = asyncio.Event()
    engine = Restarting(time.time)
    engine.commands.started.append(("before",))
    under_way = PodHooks(HookRunner(engine, SocketNetwork()), woken.set)
    run = a_run(Handler(exec=ExecAction(command=["x"])))
    under_way.follow([run], "p")
    under_way.follow([run], "p")
    await asyncio.wait_for(woken.wait(), 10)
    under_way.follow([run], "p")  # ended, and not taken yet: not started again
    assert under_way.take_ended() == [(run, "")]
    assert under_way.take_ended() == []
    assert engine.commands.started == [("before",), ("x",)]
    await under_way.close()


async def test_the_end_of_a_hook_that_was_given_up_is_not_told(runner: HookRunner) -> None:
    under_way = PodHooks(runner, lambda: None)
    async with HttpServer(b"") as server:
        under_way.follow([http(server.port)], "p")
        under_way.follow([], "p")
        await under_way.close()
    assert under_way.take_ended() == []


class Broken:
    async def exec_sync(self, *_: object) -> Iterator[None]:
        raise ZeroDivisionError


async def test_a_broken_runner_fails_the_hook_and_not_the_pod() -> None:
    woken = asyncio.Event()
    under_way = PodHooks(HookRunner(Broken(), SocketNetwork()), woken.set)  # type: ignore[arg-type]
    under_way.follow([a_run(Handler(exec=ExecAction(command=["x"])))], "p")
    await asyncio.wait_for(woken.wait(), 10)
    ((_, error),) = under_way.take_ended()
    assert error
