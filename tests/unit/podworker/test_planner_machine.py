"""A pod on the model engine under everything that can happen to it, in any order."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from services.podworker.core.container_config import sandbox_config
from services.podworker.core.hooks import record_hook_end
from services.podworker.core.model import HookState, PostStart, Verdict, Verdicts
from services.podworker.core.plan import CreateSandbox, PullImage, StartContainer
from services.podworker.core.state import begin_termination, rebase, sync_state
from shared.kube.pod import Pod
from tests.support.builders import UID, a_container, a_pod
from tests.support.model_runtime import an_image
from tests.support.pod_driver import PodDriver, run_now

NAMES = ("a", "b")
INIT_NAMES = ("i", "s", "j")
ALL_NAMES = (*NAMES, *INIT_NAMES)
COMMANDS = (["serve"], ["sleep", "5"], ["sh", "-c", "exit 0"], ["sh", "-c", "exit 1"], ["sh", "-c", "sleep 5; exit 42"])
SCRIPTS: tuple[dict[str, str], ...] = (
    {},
    {"model/ignore-term": "true"},
    {"model/start-error": "no such file"},
    {"model/s.ignore-term": "true"},
)
RULES: tuple[list[dict[str, Any]], ...] = (
    [],
    [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
    [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}],
    [{"action": "RestartAllContainers", "exitCodes": {"operator": "NotIn", "values": [0, 1, 127]}}],
)
"""None restarts all containers for an exit that comes at once: that never settles, and waits for nothing."""
OWN_POLICIES = ("", "Always", "OnFailure", "Never")
PROBE = {"exec": {"command": ["true"]}}
HOOKS = {"postStart": {"exec": {"command": ["true"]}}, "preStop": {"sleep": {"seconds": 3}}}
POLICIES = ("Always", "OnFailure", "Never")
IMAGES = ("busybox:1.36", "late:1", "UPPER")
ROUNDS = 30
"""Within so many looks a pod on which nothing happens from outside is settled."""


def containers(names: tuple[str, ...]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.tuples(*(_container(name) for name in names)).map(list)


@st.composite
def _container(draw: st.DrawFn, name: str) -> dict[str, Any]:
    policy, rules = draw(st.sampled_from(OWN_POLICIES)), draw(st.sampled_from(RULES))
    fields: dict[str, Any] = {"command": draw(st.sampled_from(COMMANDS)), "restartPolicy": policy}
    if policy:
        fields["restartPolicyRules"] = rules
    if draw(st.booleans()):
        fields |= {"livenessProbe": PROBE, "startupProbe": PROBE}
    if draw(st.booleans()):
        fields["lifecycle"] = HOOKS
    return a_container(name, **fields)


@st.composite
def init_containers(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Any of them; "s" is a sidecar, the others have neither probes nor hooks."""
    drawn = draw(containers(INIT_NAMES))
    kept = [c for c in drawn if draw(st.booleans())]
    for container in kept:
        if container["name"] == "s":
            container["restartPolicy"] = "Always"
        else:
            container["restartPolicy"] = "" if container["restartPolicy"] == "Always" else container["restartPolicy"]
            for field in ("livenessProbe", "startupProbe", "lifecycle"):
                container.pop(field, None)
        if not container["restartPolicy"]:
            container.pop("restartPolicyRules", None)
    return kept


class APod(RuleBasedStateMachine):
    @initialize(
        containers=containers(NAMES),
        init=init_containers(),
        script=st.sampled_from(SCRIPTS),
        policy=st.sampled_from(POLICIES),
        image=st.sampled_from(IMAGES),
    )
    def a_pod_is_wanted(
        self,
        containers: list[dict[str, Any]],
        init: list[dict[str, Any]],
        script: dict[str, str],
        policy: str,
        image: str,
    ) -> None:
        containers[1]["image"] = image
        self.script, self.policy, self.init = script, policy, init
        self.driver = PodDriver(self._pod(containers))
        self._give_the_engine_others()
        self.was_terminating = False
        self.grace_end: float | None = None
        self.deadlines: dict[str, float] = {}
        self.finished_phase = ""

    def _pod(self, containers: list[dict[str, Any]]) -> Pod:
        self.containers = containers
        return a_pod(
            *containers,
            annotations=self.script,
            restartPolicy=self.policy,
            terminationGracePeriodSeconds=5,
            initContainers=self.init,
        )

    def _give_the_engine_others(self) -> None:
        """A foreign container, and another pod of this instance."""
        engine = self.driver.engine
        engine.foreign["f" * 64] = "k8s_POD_foreign"
        config = sandbox_config(a_pod(), self.driver.node, 0)
        other = msgspec.structs.replace(config, uid="other", name="k8s_POD_other_default_other_0")
        self.other_sandbox = run_now(engine.run_pod_sandbox(other))

    # -- what the worker does

    @rule()
    def the_worker_looks(self) -> None:
        self._remember()
        self.driver.step()

    @rule(actions=st.integers(0, 4), record=st.booleans())
    def a_worker_dies_in_the_middle(self, actions: int, record: bool) -> None:
        self._remember()
        self.driver.step(only=actions, record=record)

    @rule()
    def a_worker_dies_before_it_stored_anything(self) -> None:
        memory = self.driver.memory
        self.driver.plan()
        self.driver.memory = memory

    # -- what happens from outside

    @rule(seconds=st.sampled_from([0.5, 2, 5, 11, 400, 700]))
    def time_passes(self, seconds: float) -> None:
        self.driver.now += seconds
        self.driver.engine.tick()

    @rule(delta=st.sampled_from([-3600.0, 3600.0]))
    def the_clock_is_set(self, delta: float) -> None:
        self.driver.now += delta
        self.driver.memory = rebase(self.driver.memory, delta)
        self.driver.engine.tick()
        if self.grace_end is not None:
            self.grace_end += delta
        self.deadlines = {key: deadline + delta for key, deadline in self.deadlines.items()}

    @rule(name=st.sampled_from(ALL_NAMES), code=st.sampled_from([0, 1, 42, 137]))
    def a_container_dies(self, name: str, code: int) -> None:
        for container in self.driver.engine.containers.values():
            if container.config.container == name:
                container.end(code, self.driver.now)

    @rule(
        name=st.sampled_from(ALL_NAMES),
        startup=st.sampled_from(["", "success", "failure"]),
        liveness=st.sampled_from(["", "success", "failure"]),
    )
    def a_prober_finds_something(self, name: str, startup: Verdict, liveness: Verdict) -> None:
        newest = self.driver.runtime().newest(name)
        if newest is not None and newest.state == "running":
            known = self.driver.memory.verdicts
            verdicts = {**known, newest.id: Verdicts(startup=startup, liveness=liveness)}
            self.driver.memory = msgspec.structs.replace(self.driver.memory, verdicts=verdicts)

    @rule(name=st.sampled_from(ALL_NAMES), state=st.sampled_from(["running", "done", "failed"]))
    def a_post_start_hook_gets_on(self, name: str, state: HookState) -> None:
        newest = self.driver.runtime().newest(name)
        if newest is not None and newest.state == "running":
            hooks = {**self.driver.memory.post_starts, newest.id: PostStart(state=state)}
            self.driver.memory = msgspec.structs.replace(self.driver.memory, post_starts=hooks)

    @rule(name=st.sampled_from(ALL_NAMES))
    def a_container_is_removed_by_hand(self, name: str) -> None:
        engine = self.driver.engine
        engine.containers = {k: c for k, c in engine.containers.items() if c.config.container != name}

    @rule()
    def the_sandbox_dies(self) -> None:
        for sandbox in self.driver.engine.live_sandboxes(UID):
            self.driver.engine.kill_sandbox(sandbox.id)

    @rule()
    def the_node_reboots(self) -> None:
        self.driver.engine.reboot()
        self.driver.engine.sandboxes[self.other_sandbox].ready = True

    @rule()
    def the_late_image_appears(self) -> None:
        self.driver.engine.registry["late:1"] = an_image("late:1")

    @rule(text=st.sampled_from(["1", "2"]))
    def the_definition_is_edited(self, text: str) -> None:
        containers = [dict(c) for c in self.containers]
        containers[0]["env"] = [{"name": "A", "value": text}]
        self.driver.pod = self._pod(containers)

    @rule(grace=st.sampled_from([0, 1, 4, 30]))
    def the_pod_is_told_to_end(self, grace: int) -> None:
        self.driver.memory = begin_termination(self.driver.memory, self.driver.now, grace, "removed")

    # -- what must hold at any time

    def _remember(self) -> None:
        status = self.driver.memory.status
        self.was_terminating = self.driver.memory.termination is not None
        if status is not None and status.phase in ("Succeeded", "Failed"):
            self.finished_phase = status.phase

    @rule(index=st.integers(0, 3), error=st.sampled_from(["", "it says no"]))
    def a_hook_under_way_ends(self, index: int, error: str) -> None:
        """Also one that was given up since, or whose container has gone."""
        hooks = self.driver.plans[-1].hooks if self.driver.plans else ()
        if index < len(hooks):
            self.driver.memory, _ = record_hook_end(self.driver.memory, hooks[index], error)

    @invariant()
    def no_signal_comes_before_the_pre_stop_hook_is_over(self) -> None:
        for stop in self.driver.memory.stops.values():
            assert stop.signalled_at is None or stop.pre_stop != "running"

    @invariant()
    def at_most_one_sandbox_lives(self) -> None:
        assert len(self.driver.engine.live_sandboxes(UID)) <= 1

    @invariant()
    def nothing_of_others_is_touched(self) -> None:
        assert self.driver.engine.sandboxes[self.other_sandbox].ready

    @invariant()
    def a_terminal_phase_sticks(self) -> None:
        status = self.driver.memory.status
        if self.finished_phase and status is not None:
            assert status.phase == self.finished_phase

    @invariant()
    def a_pod_that_ends_starts_nothing(self) -> None:
        if self.was_terminating and self.driver.plans:
            starts = (CreateSandbox, PullImage, StartContainer)
            assert not any(isinstance(action, starts) for action in self.driver.plans[-1].actions)

    @invariant()
    def the_grace_never_grows(self) -> None:
        memory = self.driver.memory
        if memory.termination is None:
            assert self.grace_end is None, "termination can't be undone"
            return
        end = memory.termination.at + memory.termination.grace
        assert self.grace_end is None or end <= self.grace_end + 1e-6
        self.grace_end = end

    @invariant()
    def no_deadline_moves_later(self) -> None:
        for container_id, stop in self.driver.memory.stops.items():
            known = self.deadlines.get(container_id, stop.deadline)
            assert stop.deadline <= known + 1e-6
            self.deadlines[container_id] = stop.deadline

    @rule()
    def left_alone_it_settles(self) -> None:
        """Looked at again and again with nothing happening, the plan gets empty; waiting for what it says it waits
        for, a pod that was told to end is gone."""
        self._remember()
        plan = self.driver.settle(ROUNDS)
        if self.driver.memory.termination is None:
            return
        for _ in range(ROUNDS):
            if plan.wake_at is None:
                break
            self.driver.now = max(self.driver.now, plan.wake_at)
            plan = self.driver.settle(ROUNDS)
        assert sync_state(self.driver.memory, self.driver.runtime()) == "finished"


APod.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestAPod = APod.TestCase
