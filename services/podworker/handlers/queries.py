"""Answers questions about what runs, and prepares byte streams."""

from __future__ import annotations

import asyncio
import logging

from services.podworker.core.model import RuntimeSandbox
from services.podworker.handlers.streams import Streams
from services.podworker.ports import ContainerRuntime, LogLost, LogReader, RuntimeUnavailable
from shared.bus import RemoteError
from shared.contracts.streams import LogOptions, StreamCommand, StreamTicket
from shared.contracts.worker import RunningContainerImage, RunningPod, RunningPods, RunningPodsQuery
from shared.streams.server import StreamServer

log = logging.getLogger("podbus.podworker.queries")


class Queries:
    """Any worker answers for the whole node: they all see the same engine."""

    def __init__(self, runtime: ContainerRuntime, logs: LogReader, sessions: Streams, server: StreamServer) -> None:
        self._runtime = runtime
        self._logs = logs
        self._sessions = sessions
        self._server = server

    async def running(self, _: RunningPodsQuery) -> RunningPods:
        """kubelet: pods with a running container, rebuilt from the runtime."""
        try:
            pods = await self._runtime.list_pods()
        except RuntimeUnavailable as error:
            raise RemoteError("unavailable", str(error)) from error
        return RunningPods(
            pods=[
                RunningPod(
                    namespace=pod.namespace,
                    name=pod.name,
                    uid=pod.uid,
                    containers=[
                        RunningContainerImage(name=c.name, image=c.image_id.rpartition("//")[2])
                        for c in sorted(pod.running, key=lambda c: c.name)
                    ],
                )
                for pod in sorted(pods.values(), key=lambda p: (p.namespace, p.name, p.uid))
                if pod.running
            ]
        )

    async def stream(self, command: StreamCommand) -> StreamTicket:
        """The container must be one of ours and of that pod: the API can't reach other containers of the engine."""
        try:
            pod = await self._runtime.pod(command.uid)
        except RuntimeUnavailable as error:
            raise RemoteError("unavailable", str(error)) from error
        sandbox: RuntimeSandbox | None = None
        if command.kind == "portForward":
            sandbox = next((one for one in pod.sandboxes if one.ready), None) if pod is not None else None
            if sandbox is None or not sandbox.pid:
                raise RemoteError("not_found", f"pod {command.uid} has no sandbox that runs")
        elif pod is None or all(c.id != command.container_id for c in pod.containers):
            raise RemoteError("not_found", f"no container {command.container_id[:12]} in pod {command.uid}")

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            match command.kind:
                case "logs":
                    await self._send_log(command.container_id, command.logs, reader, writer)
                case "exec" | "attach":
                    await self._sessions.exec(command.container_id, command.exec, reader, writer)
                case "portForward":
                    assert sandbox is not None
                    await self._sessions.forward(sandbox.pid, command.port, reader, writer)

        return self._server.issue(serve)

    async def _send_log(
        self,
        container_id: str,
        options: LogOptions,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        sending = asyncio.ensure_future(self._copy(container_id, options, writer))
        gone = asyncio.ensure_future(reader.read(1))  # a peer that left shows here, also while the log is silent
        await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        for future in (sending, gone):
            future.cancel()
        outcome = (await asyncio.gather(sending, return_exceptions=True))[0]
        if isinstance(outcome, Exception) and not isinstance(outcome, ConnectionError):
            raise outcome

    async def _copy(self, container_id: str, options: LogOptions, writer: asyncio.StreamWriter) -> None:
        try:
            async for chunk in self._logs.read(container_id, options):
                writer.write(chunk)
                await writer.drain()
        except LogLost as error:  # kubelet: the text is appended to the body
            writer.write(f"failed to read the log: {error}\n".encode())
