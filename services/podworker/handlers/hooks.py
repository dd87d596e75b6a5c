"""Runs hooks beside their pod's task, which they never block: each is a task of its own, and its end wakes the pod.

Which hooks should be under way, and what an end means, the core says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from services.podworker.core import hooks_text
from services.podworker.core.hook_runs import http_request
from services.podworker.core.plan import HookRun
from services.podworker.ports import CommandRunner, Network, RuntimeRefused, RuntimeUnavailable, Unreachable
from shared.kube.pod import ExecAction, HTTPGetAction

log = logging.getLogger("podbus.podworker.hooks")

RETRY_SECONDS = 1.0
"""While the engine doesn't answer."""
CLOSE_SECONDS = 1.0
"""So long a pod that goes to another worker waits for the ends of its hooks' processes."""
_SPEAKS_HTTP = "server gave HTTP response to HTTPS client"


class HookRunner:
    """Shared by all pods of a worker."""

    def __init__(self, commands: CommandRunner, network: Network) -> None:
        self._commands = commands
        self._network = network

    async def run(self, run: HookRun, pod: str) -> str:
        """Until its end; why it failed, "" = it didn't. `pod` as events_text.full_name writes it."""
        handler = run.handler
        if handler.exec is not None:
            return await self._exec(run, handler.exec, pod)
        if handler.http_get is not None:
            return await self._http(run, handler.http_get, pod)
        return hooks_text.invalid_handler(run, pod)

    async def _exec(self, run: HookRun, action: ExecAction, pod: str) -> str:
        while True:
            try:
                result = await self._commands.exec_sync(run.container_id, action.command, None)
            except RuntimeUnavailable as error:
                log.info("engine away during a hook pod=%s container=%s error=%s", pod, run.name, error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            except RuntimeRefused as error:
                return hooks_text.exec_failed(run, pod, error.message, b"")
            if result.exit_code == 0:
                return ""
            error_text = hooks_text.exited_with(run, result.exit_code)
            return hooks_text.exec_failed(run, pod, error_text, result.output)

    async def _http(self, run: HookRun, action: HTTPGetAction, pod: str) -> str:
        """Any answer will do, whatever its status."""
        try:
            url, headers = http_request(run, action)
            try:
                await self._network.http_get(url, headers, follow=True)
            except Unreachable as error:
                if _SPEAKS_HTTP not in str(error):
                    raise
                # kubelet: what was meant for TLS isn't sent in the clear
                open_headers = [(name, value) for name, value in headers if name.lower() != "authorization"]
                await self._network.http_get(url.replace("https:", "http:", 1), open_headers, follow=True)
        except (Unreachable, ValueError) as error:
            return hooks_text.http_failed(run, pod, str(error))
        return ""


class PodHooks:
    """The hooks of one pod that are under way here."""

    def __init__(self, runner: HookRunner, wake: Callable[[], None]) -> None:
        self._runner = runner
        self._wake = wake
        self._under_way: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._ended: dict[tuple[str, str], tuple[HookRun, str]] = {}
        self._given_up: set[asyncio.Task[None]] = set()

    def follow(self, wanted: Sequence[HookRun], pod: str) -> None:
        """Start those that aren't under way, give up those that aren't wanted any more."""
        keys = {_key(run) for run in wanted}
        for key in [key for key in self._under_way if key not in keys]:
            log.info("hook given up pod=%s hook=%s", pod, key[1])
            self._give_up(self._under_way.pop(key))
        for run in wanted:
            key = _key(run)
            if key not in self._under_way and key not in self._ended:
                log.info("hook pod=%s container=%s hook=%s", pod, run.name, run.kind)
                self._under_way[key] = asyncio.create_task(self._run(run, pod), name=f"{run.kind} {pod} {run.name}")

    def take_ended(self) -> list[tuple[HookRun, str]]:
        """The hooks that have ended since, with why they failed ("" = they didn't)."""
        ended = list(self._ended.values())
        self._ended.clear()
        return ended

    async def close(self) -> None:
        """Give up all: the next owner runs them again. Their processes are gone by then, or soon after."""
        for task in self._under_way.values():
            self._give_up(task)
        self._under_way.clear()
        if self._given_up:
            await asyncio.wait(self._given_up, timeout=CLOSE_SECONDS)

    def _give_up(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        self._given_up.add(task)
        task.add_done_callback(self._given_up.discard)

    async def _run(self, run: HookRun, pod: str) -> None:
        try:
            error = await self._runner.run(run, pod)
        except Exception:  # the boundary: a hook's fault is its container's, never its pod's
            log.exception("hook broke pod=%s container=%s hook=%s", pod, run.name, run.kind)
            error = "internal error"
        if self._under_way.get(_key(run)) is not asyncio.current_task():
            return  # given up at the last moment
        del self._under_way[_key(run)]
        self._ended[_key(run)] = (run, error)
        if error:
            log.info("hook failed pod=%s container=%s hook=%s", pod, run.name, run.kind)
        self._wake()


def _key(run: HookRun) -> tuple[str, str]:
    return run.container_id, run.kind
