"""The plain requests of a recorded kubelet 1.20.2, asked again: each difference is listed with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from shared.contracts.registry import RUNNING_PODS, STREAM
from shared.contracts.streams import StreamStatus
from shared.kube.status import ContainerState, ContainerStatus, PodStatus, StateWaiting
from shared.streams.channels import STATUS, STDOUT, frame
from tests.component.api.other_services import OtherServices, running_status
from tests.component.api.process import Answer, ApiProcess
from tests.support.eventually import eventually_async
from tests.support.http_differences import DIFFERENCES, NOT_ASKED
from tests.support.http_recording import Recorded, recorded
from tests.support.nats_server import NatsServer, free_port
from tests.support.review_server import ReviewServer

pytestmark = pytest.mark.nats

ROWS = recorded()
USERS = {"UNAUTH": None, "FORBID": "bob", "AUTHZERR": "bob"}


@pytest.fixture(scope="module")
def processes(module_nats: NatsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ApiProcess]]:
    """One for each setup of the recording; the others share the plain one."""
    server = ReviewServer(tmp_path_factory.mktemp("cluster"))
    server.start()

    def made(**config: object) -> ApiProcess:
        process = ApiProcess(tmp_path_factory.mktemp("data"), module_nats, **config)  # type: ignore[arg-type]
        process.prepare()
        with (process.paths.pki / "tokens.csv").open("a") as tokens:
            tokens.write("bob-token,bob,u\n")
        process.spawn()
        return process

    started = {
        "ALLOW": made(read_only_port=free_port()),
        "NODEBUG": made(debugging_handlers=False),
        "NOSYSLOG": made(system_log_handler=False),
        "AUTHZERR": made(kubeconfig=server.kubeconfig()),
    }
    server.access_status[:] = [403] * 9
    try:
        for process in started.values():
            process.wait_until_ready()
        yield started
    finally:
        for process in started.values():
            process.stop()
        server.stop()


def _waiting() -> PodStatus:
    state = ContainerState(waiting=StateWaiting(reason="ContainerCreating"))
    status = ContainerStatus(
        name="c1",
        state=state,
        last_state=ContainerState(),
        ready=False,
        restart_count=0,
        image="i",
        image_id="",
        container_id="",
        started=False,
    )
    return PodStatus(phase="Pending", container_statuses=[status], qos_class="BestEffort")


async def _publish_pods(process: ApiProcess, others: OtherServices) -> None:
    """As the recorder's host had them."""
    for name in ("p1", "errlog", "errpre"):
        uid = "u9" if name == "p1" else f"uid-{name}"
        await others.want(name, uid=uid)
        await others.report(name, _waiting() if name == "errlog" else running_status(), uid=uid)

    async def commanded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        command = others.commands[-1]
        if command.kind == "logs":
            writer.write(b"log\n")
            return
        failed = command.exec.command == ["fail"]
        words = " ".join(f'"{word}"' for word in command.exec.command)
        writer.write(frame(STDOUT, f"[{words}]".encode()))
        writer.write(frame(STATUS, msgspec.json.encode(StreamStatus(outcome="ended", exit_code=int(failed)))))

    others.log_handler = commanded
    await others.answer(STREAM, RUNNING_PODS)

    async def shown() -> bool:
        return (await process.ask_async("/pods")).body.count(b"containerStatuses") == 3

    await eventually_async(shown, within=5)


def _differs(row: Recorded, answer: Answer) -> str:
    """ "" = as recorded."""
    found = (
        answer.status,
        answer.headers.get("content-type"),
        "x-content-type-options" in answer.headers,
        answer.headers.get("location"),
        answer.body,
    )
    wanted = (row.status, row.content_type, row.nosniff, row.location, row.body)
    names = ("status", "type", "nosniff", "location", "body")
    return ", ".join(f"{n}: {f!r} for {w!r}" for n, f, w in zip(names, found, wanted, strict=True) if f != w)


@pytest.mark.parametrize("setup", sorted({row.setup for row in ROWS} - {"STALE"}))
async def test_answers_are_the_recorded_kubelets_but_for_what_is_listed(
    processes: dict[str, ApiProcess], others: OtherServices, setup: str
) -> None:
    process = processes.get(setup, processes["ALLOW"])
    if setup == "ALLOW":
        await _publish_pods(process, others)
    wrong: list[str] = []
    for row in ROWS:
        if row.setup != setup or row.name in NOT_ASKED:
            continue
        answer = await asyncio.to_thread(
            process.ask_read_only if setup == "RO" else process.ask,
            row.target,
            user=USERS.get(setup, "admin"),
            method=row.method,
            headers=row.headers,
            body=row.sent,
        )
        difference = _differs(row, answer)
        listed = DIFFERENCES.get(row.name)
        if listed is None and difference:
            wrong.append(f"{row.name}: {difference}")
        elif listed is not None and not difference:
            wrong.append(f"{row.name}: is as recorded; the list says it isn't")
        elif listed is not None and (text := listed.fault(answer)):
            wrong.append(f"{row.name}: {text}")
    assert not wrong, "\n".join(wrong)


def test_every_listed_difference_is_of_a_recorded_request() -> None:
    names = {row.name for row in ROWS}
    assert (DIFFERENCES.keys() | NOT_ASKED.keys()) - names == set()
