"""The model engine as a process of its own, as dockerd is: workers on it die and come, what it runs stays.

`EngineProcess` is the test's side; workers reach it with PODBUS_TEST_RUNTIME=tests.support.engine_process:connect and
the socket in PODBUS_TEST_ENGINE. What was begun for a worker that is killed is finished, as dockerd does. Every start
and end of a container is in its record (see engine_record.py).
"""

from __future__ import annotations

import asyncio
import os
import pickle
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from services.podworker.core.container_config import ContainerConfig, ContainerUpdate, SandboxConfig
from services.podworker.core.image_credentials import Credential
from services.podworker.core.image_layers import ImageLayers
from services.podworker.core.model import RuntimePod
from services.podworker.ports import (
    EngineInfo,
    ImageInfo,
    ImagePullFailed,
    PullProgress,
    RuntimeRefused,
    RuntimeUnavailable,
)
from shared.contracts.streams import LogOptions
from shared.runtime.settings import Settings
from tests.support.eventually import eventually
from tests.support.model_runtime import ModelContainer, ModelRuntime

ROOT = Path(__file__).resolve().parents[2]
_LOOK_SECONDS = (0.0, 0.001)
_CHANGE_SECONDS = (0.001, 0.008)
"""How long a call takes at least and at most: long enough for two owners of one pod to meet."""
_LOOKS = ("info", "list_pods", "pod", "foreign_sandboxes", "image", "images", "image_layers")


class EngineProcess:
    """The engine, from the test's side."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "engine.sock"
        self.record_path = directory / "engine.record"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.engine_process", str(self.socket), str(self.record_path)], cwd=ROOT
        )
        eventually(self.socket.exists, within=20)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PODBUS_TEST_RUNTIME": "tests.support.engine_process:connect",
            "PODBUS_TEST_ENGINE": str(self.socket),
        }

    def record(self) -> str:
        return self.record_path.read_text()

    def close(self) -> None:
        self._process.kill()
        self._process.wait(10)


# -- the engine's own process


class _Server:
    def __init__(self, record: Path) -> None:
        self._runtime = ModelRuntime(time.time)
        self._record = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, path: str) -> None:
        scratch = f"{path}.new"
        server = await asyncio.start_unix_server(self._connected, scratch, limit=1 << 24)
        os.rename(scratch, path)  # there only when it answers
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                number, verb, arguments = await _receive(reader)
                work = self._follow(writer, number) if verb == "changes" else self._do(writer, number, verb, arguments)
                task = asyncio.create_task(work)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _do(self, writer: asyncio.StreamWriter, number: int, verb: str, arguments: tuple[Any, ...]) -> None:
        await asyncio.sleep(random.uniform(*(_LOOK_SECONDS if verb in _LOOKS else _CHANGE_SECONDS)))
        before = self._live()
        outcome: tuple[Any, ...]
        try:
            result = await getattr(self._runtime, verb)(*arguments)
        except RuntimeRefused as error:
            outcome = ("refused", error.reason, error.message)
        except RuntimeUnavailable as error:
            outcome = ("unavailable", str(error))
        except ImagePullFailed as error:
            outcome = ("pull failed", error.reason, error.message)
        except Exception as error:  # a worker's mistake, such as an id that isn't there any more
            outcome = ("refused", "EngineError", f"{type(error).__name__}: {error}")
        else:
            outcome = ("ok", result)
        after = self._live()
        for mark, those in (("-", before.keys() - after.keys()), ("+", after.keys() - before.keys())):
            for container in those:
                self._note(mark, (before | after)[container])
        _send(writer, (number, *outcome))

    async def _follow(self, writer: asyncio.StreamWriter, number: int) -> None:
        async for uid in self._runtime.changes():
            if writer.is_closing():
                return
            _send(writer, (number, "ok", uid))

    def _live(self) -> dict[str, ModelContainer]:
        return {c.id: c for c in self._runtime.containers.values() if c.is_running}

    def _note(self, mark: str, container: ModelContainer) -> None:
        config = container.config
        version = next((one.partition("=")[2] for one in config.env if one.startswith("VERSION=")), "0")
        line = f"{time.monotonic_ns()} {mark} {config.namespace}/{config.pod} {config.uid} {container.id} {version}\n"
        os.write(self._record, line.encode())


# -- the worker's side


class EngineClient:
    """ContainerRuntime, ImageService and LogReader over the socket."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._writer: asyncio.StreamWriter | None = None
        self._numbers = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._changes: dict[int, asyncio.Queue[str | None]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def info(self) -> EngineInfo:
        result: EngineInfo = await self._call("info")
        return result

    async def list_pods(self) -> Mapping[str, RuntimePod]:
        result: Mapping[str, RuntimePod] = await self._call("list_pods")
        return result

    async def pod(self, uid: str) -> RuntimePod | None:
        result: RuntimePod | None = await self._call("pod", uid)
        return result

    async def foreign_sandboxes(self) -> Sequence[str]:
        result: Sequence[str] = await self._call("foreign_sandboxes")
        return result

    async def run_pod_sandbox(self, config: SandboxConfig) -> str:
        result: str = await self._call("run_pod_sandbox", config)
        return result

    async def create_container(self, config: ContainerConfig, sandbox_id: str) -> str:
        result: str = await self._call("create_container", config, sandbox_id)
        return result

    async def start_container(self, container_id: str) -> None:
        await self._call("start_container", container_id)

    async def update_container(self, container_id: str, update: ContainerUpdate) -> None:
        await self._call("update_container", container_id, update)

    async def signal_container(self, container_id: str, signal: str) -> None:
        await self._call("signal_container", container_id, signal)

    async def remove_container(self, container_id: str) -> None:
        await self._call("remove_container", container_id)

    async def stop_pod_sandbox(self, sandbox_id: str) -> None:
        await self._call("stop_pod_sandbox", sandbox_id)

    async def remove_pod_sandbox(self, sandbox_id: str) -> None:
        await self._call("remove_pod_sandbox", sandbox_id)

    async def remove_pod_leftovers(self, uid: str) -> None:
        await self._call("remove_pod_leftovers", uid)

    async def changes(self) -> AsyncIterator[str | None]:
        await self._connect()
        number = self._send("changes", ())
        queue = self._changes[number] = asyncio.Queue()
        while True:
            yield await queue.get()

    async def image(self, reference: str) -> ImageInfo | None:
        result: ImageInfo | None = await self._call("image", reference)
        return result

    async def pull_image(
        self, reference: str, progress: PullProgress, credential: Credential | None = None
    ) -> ImageInfo:
        raise ImagePullFailed("ErrImagePull", f"no registry has {reference}")

    async def image_layers(self, image_id: str) -> ImageLayers | None:
        result: ImageLayers | None = await self._call("image_layers", image_id)
        return result

    async def images(self) -> Sequence[ImageInfo]:
        result: Sequence[ImageInfo] = await self._call("images")
        return result

    async def read(self, container_id: str, options: LogOptions) -> AsyncIterator[bytes]:
        for line in list[bytes]():
            yield line

    async def _call(self, verb: str, *arguments: Any) -> Any:
        await self._connect()
        number = self._send(verb, arguments)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        match await answer:
            case ("ok", result):
                return result
            case ("refused", reason, message):
                raise RuntimeRefused(reason, message)
            case ("pull failed", reason, message):
                raise ImagePullFailed(reason, message)
            case other:
                raise RuntimeUnavailable(str(other))

    async def _connect(self) -> None:
        if self._writer is None:
            reader, self._writer = await asyncio.open_unix_connection(self._path, limit=1 << 24)
            self._reading = asyncio.create_task(self._read(reader))

    def _send(self, verb: str, arguments: tuple[Any, ...]) -> int:
        assert self._writer is not None
        self._numbers += 1
        _send(self._writer, (self._numbers, verb, arguments))
        return self._numbers

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            number, *outcome = await _receive(reader)
            if (queue := self._changes.get(number)) is not None:
                queue.put_nowait(outcome[1])
            elif not (answer := self._waiting.pop(number)).done():
                answer.set_result(tuple(outcome))


def connect(settings: Settings, instance: str) -> EngineClient:
    """PODBUS_TEST_RUNTIME's factory."""
    return EngineClient(os.environ["PODBUS_TEST_ENGINE"])


async def _receive(reader: asyncio.StreamReader) -> Any:
    length = int.from_bytes(await reader.readexactly(4), "big")
    return pickle.loads(await reader.readexactly(length))


def _send(writer: asyncio.StreamWriter, message: object) -> None:
    body = pickle.dumps(message)
    writer.write(len(body).to_bytes(4, "big") + body)


if __name__ == "__main__":
    asyncio.run(_Server(Path(sys.argv[2])).serve(sys.argv[1]))
