"""One pod on the model engine, driven as the worker's handlers do it: plan, store, act, record, look again."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from services.podworker.core import results
from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.container_config import ContainerUpdate, container_config, sandbox_config
from services.podworker.core.generate import generate_status, remember_status
from services.podworker.core.images import never_pull_message, pull_decision
from services.podworker.core.model import PodMemory, RuntimePod
from services.podworker.core.plan import (
    Action,
    CreateSandbox,
    Kill,
    Plan,
    PullImage,
    RemoveContainer,
    RemoveSandbox,
    Signal,
    StartContainer,
    StopSandbox,
    SyncConfig,
    UpdateContainer,
)
from services.podworker.core.pod_limits import PodLimits
from services.podworker.core.state import nothing_of
from services.podworker.ports import ImagePullFailed, RuntimeRefused
from shared.kube.pod import Pod, container_named
from tests.support.builders import NODE_IP, NOW, a_memory, a_node
from tests.support.model_runtime import ModelRuntime

T = TypeVar("T")


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, without a loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("the coroutine waits")


class PodDriver:
    """Holds what survives a worker: the pod's row and the engine."""

    def __init__(self, pod: Pod) -> None:
        self.now = NOW
        self.pod = pod
        self.memory: PodMemory = a_memory(pod)
        self.engine = ModelRuntime(lambda: self.now)
        self.config = SyncConfig()
        self.node = a_node()
        self.plans: list[Plan] = []

    def runtime(self) -> RuntimePod:
        return run_now(self.engine.pod(self.memory.uid)) or nothing_of(self.memory)

    def plan(self) -> Plan:
        """Plan and store, without acting."""
        runtime = self.runtime()
        plan = compute_pod_actions(self.pod, self.memory, runtime, now=self.now, config=self.config)
        self.memory = plan.memory
        self.publish()
        self.plans.append(plan)
        return plan

    def publish(self) -> None:
        status = generate_status(self.pod, self.memory, self.runtime(), node_ip=NODE_IP, now=self.now)
        self.memory = remember_status(self.memory, status, now=self.now)

    def step(self, *, only: int | None = None, record: bool = True) -> Plan:
        """One round. `only`: the worker dies after so many actions; not `record`: before it notes results."""
        plan = self.plan()
        self.execute(plan, only=only, record=record)
        return plan

    def settle(self, rounds: int = 30) -> Plan:
        """Rounds until there is nothing to do now."""
        for _ in range(rounds):
            plan = self.step()
            if not plan.actions:
                return plan
        raise AssertionError(f"still busy after {rounds} rounds: {plan.reasons}")

    def execute(self, plan: Plan, *, only: int | None = None, record: bool = True) -> None:
        skipped: set[str] = set()
        for action in plan.actions[:only]:
            if isinstance(action, StartContainer) and action.name in skipped:
                continue
            memory = self.memory
            if not self._carry_out(action, skipped):
                break
            if not record:
                self.memory = memory

    def _carry_out(self, action: Action, skipped: set[str]) -> bool:
        """False when the rest of the plan can't be done."""
        try:
            self._act(action)
        except ImagePullFailed as error:
            assert isinstance(action, PullImage)
            skipped.add(action.container)
            self.memory = results.record_pull_failed(
                self.memory, action, error.reason, error.message, now=self.now, config=self.config
            )
            return True
        except RuntimeRefused as error:
            return self._refused(action, error)
        self.memory = results.record_done(self.memory, action, now=self.now)
        return True

    def _refused(self, action: Action, error: RuntimeRefused) -> bool:
        if isinstance(action, StartContainer):
            self.memory = results.record_start_failed(
                self.memory, action, error.reason, error.message, now=self.now, config=self.config
            )
            return True
        self.memory = results.record_sandbox_failed(
            self.memory, error.reason, error.message, now=self.now, config=self.config
        )
        return False

    def _act(self, action: Action) -> None:
        engine = self.engine
        match action:
            case CreateSandbox():
                run_now(engine.run_pod_sandbox(sandbox_config(self.pod, self.node, action.attempt)))
            case PullImage():
                self._pull(action)
            case StartContainer():
                self._start(action)
            case UpdateContainer():
                update = ContainerUpdate(
                    cpu_shares=action.cpu_shares,
                    cpu_quota=action.cpu_quota,
                    memory=action.memory,
                    cgroup_parent="",
                    pod_limits=PodLimits(),
                )
                run_now(engine.update_container(action.container_id, update))
            case Signal():
                run_now(engine.signal_container(action.container_id, action.signal))
            case Kill():
                run_now(engine.signal_container(action.container_id, "SIGKILL"))
            case RemoveContainer():
                run_now(engine.remove_container(action.container_id))
            case StopSandbox():
                run_now(engine.stop_pod_sandbox(action.sandbox_id))
            case RemoveSandbox():
                run_now(engine.remove_pod_sandbox(action.sandbox_id))

    def _pull(self, action: PullImage) -> None:
        present = run_now(self.engine.image(action.reference)) is not None
        match pull_decision(action.policy, present=present):
            case "pull":
                run_now(self.engine.pull_image(action.reference, lambda done, total: None))
            case "refuse":
                raise ImagePullFailed(results.ERR_IMAGE_NEVER_PULL, never_pull_message(action.reference))
            case "use":
                pass

    def _start(self, action: StartContainer) -> None:
        assert self.memory.termination is None, "a terminating pod starts nothing"
        sandbox = self.runtime().sandboxes[0]
        container = container_named(self.pod, action.name)
        assert container is not None
        config = container_config(
            self.pod,
            container,
            self.node,
            action.attempt,
            sandbox_id=sandbox.id,
            source=self.memory.source,
        )
        container_id = run_now(self.engine.create_container(config, sandbox.id))
        run_now(self.engine.start_container(container_id))
