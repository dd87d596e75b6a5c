"""Event MissingClusterDNS: once per pod, where its sandbox is made."""

from __future__ import annotations

import time

import pytest

from services.podworker.core.container_config import SandboxConfig
from services.podworker.core.model import PodMemory
from services.podworker.core.plan import CreateSandbox, Plan, SyncConfig
from services.podworker.handlers.execute import Execution
from services.podworker.handlers.executor import Executor
from services.podworker.handlers.permits import Permits
from services.podworker.ports import RuntimeRefused
from shared.kube.pod import Pod
from shared.runtime.clock import SystemClock
from tests.support.builders import a_memory, a_node, a_pod
from tests.support.model_runtime import ModelRuntime
from tests.support.no_volumes import no_volumes


class Refusing(ModelRuntime):
    """Can't make the first sandbox."""

    refusals = 1

    async def run_pod_sandbox(self, config: SandboxConfig) -> str:
        if self.refusals:
            self.refusals -= 1
            raise RuntimeRefused("FailedCreatePodSandBox", "no address is left")
        return await super().run_pod_sandbox(config)


async def made(pod: Pod, memory: PodMemory, engine: ModelRuntime, attempt: int = 0, **node: object) -> Execution:
    executor = Executor(
        engine, engine, Permits(1), Permits(1), a_node(**node), SyncConfig(), SystemClock(), volumes=no_volumes()
    )
    execution = Execution(executor, pod, "", memory, lambda memory: None)
    actions = (CreateSandbox(attempt=attempt, reason=""),)
    await execution.run(Plan(actions=actions, memory=memory, wake_at=None, reasons=(), events=()))
    return execution


def told(execution: Execution) -> list[str]:
    return [event.reason for event in execution.outcome.events]


async def test_a_pod_whose_sandbox_needs_a_second_try_is_told_of_once() -> None:
    pod, engine = a_pod(), Refusing(time.time)
    first = await made(pod, a_memory(pod), engine)
    assert told(first) == ["MissingClusterDNS", "FailedCreatePodSandBox"]
    assert told(await made(pod, first.outcome.memory, engine)) == []


async def test_a_later_sandbox_tells_nothing_new() -> None:
    pod = a_pod()
    assert told(await made(pod, a_memory(pod), ModelRuntime(time.time), attempt=1)) == []


@pytest.mark.parametrize("policy", ["Default", "ClusterFirst"])
async def test_a_pod_that_gets_what_it_asked_for_tells_nothing(policy: str) -> None:
    pod = a_pod(dnsPolicy=policy)
    dns = ("10.0.0.10",) if policy == "ClusterFirst" else ()
    assert told(await made(pod, a_memory(pod), ModelRuntime(time.time), cluster_dns=dns)) == []
