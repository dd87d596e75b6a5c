"""What a pod's status says from look to look while it lives on the model engine: the words that people wait for."""

from __future__ import annotations

import msgspec
import pytest

from shared.kube.pod import Pod
from shared.kube.status import ContainerStatus, PodStatus
from tests.support.builders import a_container, a_pod
from tests.support.pod_driver import PodDriver

RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}


class Watched(PodDriver):
    """Keeps each status that was published."""

    def __init__(self, pod: Pod) -> None:
        self.seen: list[PodStatus] = []
        super().__init__(pod)

    def publish(self) -> None:
        super().publish()
        assert self.memory.status is not None
        self.seen.append(self.memory.status)

    def later(self, seconds: float) -> None:
        """Time passes, then everything that is due is done."""
        self.now += seconds
        self.engine.tick()
        plan = self.settle()
        while plan.wake_at is not None and plan.wake_at <= self.now:
            plan = self.settle()

    def exits(self, name: str, code: int) -> None:
        newest = self.runtime().newest(name)
        assert newest is not None
        self.engine.containers[newest.id].end(code, self.now)


def short(status: ContainerStatus) -> str:
    state = status.state
    if state.waiting is not None:
        return state.waiting.reason
    return "running" if state.running is not None else f"exit {state.terminated.exit_code if state.terminated else ''}"


def phases(statuses: list[PodStatus]) -> list[str]:
    """Without repetitions."""
    found: list[str] = []
    for status in statuses:
        if found[-1:] != [status.phase]:
            found.append(status.phase)
    return found


def condition(status: PodStatus, kind: str) -> tuple[str, str]:
    found = status.condition(kind)
    assert found is not None
    return found.status, found.reason


def test_init_containers_one_after_the_other_and_then_the_pod_runs() -> None:
    """I01, as the statuses tell it."""
    pod = a_pod(initContainers=[a_container("i", command=["sleep", "5"]), a_container("j", command=["sleep", "5"])])
    driver = Watched(pod)
    for _ in range(3):
        driver.later(6)
    words = [
        [short(s) for s in (*status.init_container_statuses, *status.container_statuses)] for status in driver.seen
    ]
    order = [
        ["PodInitializing", "PodInitializing", "PodInitializing"],
        ["running", "PodInitializing", "PodInitializing"],
        ["exit 0", "PodInitializing", "PodInitializing"],
        ["exit 0", "running", "PodInitializing"],
        ["exit 0", "exit 0", "PodInitializing"],
        ["exit 0", "exit 0", "running"],
    ]
    assert [w for w, before in zip(words, [[], *words], strict=False) if w != before] == order
    assert phases(driver.seen) == ["Pending", "Running"]
    initialized = [condition(status, "Initialized") for status in driver.seen]
    assert initialized[0] == ("False", "ContainersNotInitialized")
    assert initialized[-1] == ("True", "")


def test_an_init_container_that_fails_for_good_fails_the_pod() -> None:
    """a10: the others wait for ever."""
    pod = a_pod(initContainers=[a_container("i", command=["sh", "-c", "exit 7"])], restartPolicy="Never")
    driver = Watched(pod)
    driver.later(1)
    assert phases(driver.seen) == ["Pending", "Failed"]
    assert [short(s) for s in driver.seen[-1].container_statuses] == ["PodInitializing"]


def test_a_pod_is_over_when_its_regular_containers_are_and_its_sidecars_ends_do_not_count() -> None:
    pod = a_pod(
        a_container("c", command=["sleep", "5"]),
        initContainers=[a_container("s", restartPolicy="Always")],
        restartPolicy="Never",
    )
    driver = Watched(pod)
    for _ in range(4):
        driver.later(3)
    last = driver.seen[-1]
    assert phases(driver.seen) == ["Pending", "Running", "Succeeded"]
    assert short(last.init_container_statuses[0]) == "exit 143"
    assert condition(last, "Ready") == ("False", "PodCompleted")


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_a_pod_that_starts_over_says_so(policy: str) -> None:
    """AllContainersRestarting, 137 as everybody's last end, restartCount +1; never terminal, never uninitialized."""
    watch = a_container("watch", restartPolicy="Never", restartPolicyRules=[RULE])
    init = [a_container("i", command=["sh", "-c", "exit 0"]), a_container("s", restartPolicy="Always")]
    driver = Watched(a_pod(a_container("c"), watch, initContainers=init, restartPolicy=policy))
    driver.later(1)
    assert phases(driver.seen) == ["Pending", "Running"]
    assert condition(driver.seen[-1], "AllContainersRestarting") == ("False", "")
    before = len(driver.seen)
    driver.exits("watch", 42)
    for _ in range(4):
        driver.later(3)
    during, last = driver.seen[before:], driver.seen[-1]
    assert ("True", "RestartAllContainersStarted") in [condition(s, "AllContainersRestarting") for s in during]
    assert condition(last, "AllContainersRestarting") == ("False", "")
    assert {condition(status, "Initialized") for status in during} == {("True", "")}
    assert set(phases(during)) <= {"Running", "Pending"}
    assert "RestartingAllContainers" in {short(s) for status in during for s in status.container_statuses}
    for one in (*last.init_container_statuses, *last.container_statuses):
        assert one.restart_count == 1
        assert one.last_state.terminated is not None
        end = one.last_state.terminated
        assert (end.reason, end.exit_code) == ("RestartingAllContainers", 137)
    assert condition(last, "Ready") == ("True", "")


def test_a_deadline_ends_a_crash_loop_with_its_real_end() -> None:
    """T17 beside a back-off: Failed, and the container's own last exit is its state."""
    driver = Watched(a_pod(a_container(command=["sh", "-c", "exit 3"]), activeDeadlineSeconds=30))
    for _ in range(12):
        driver.later(3)
    last = driver.seen[-1]
    assert phases(driver.seen) == ["Pending", "Running", "Failed"]
    assert (last.reason, condition(last, "Ready")) == ("DeadlineExceeded", ("False", "PodFailed"))
    end = last.container_statuses[0].state.terminated
    assert end is not None
    assert (end.exit_code, end.reason) == (3, "Error")
    starts = driver.engine.calls.count(("start_container", ""))
    driver.later(1000)
    assert driver.engine.calls.count(("start_container", "")) == starts
    assert msgspec.structs.replace(driver.seen[-1]) == last


def test_a_deadline_before_the_image_came_leaves_a_container_that_was_never_seen() -> None:
    driver = Watched(a_pod(a_container(image="late:1"), activeDeadlineSeconds=30))
    for _ in range(12):
        driver.later(3)
    last = driver.seen[-1]
    assert phases(driver.seen) == ["Pending", "Failed"]
    assert {short(s) for status in driver.seen for s in status.container_statuses} == {
        *("ContainerCreating", "ImagePullBackOff", "exit 137")
    }
    end = last.container_statuses[0].state.terminated
    assert end is not None
    assert end.reason == "ContainerStatusUnknown"
    assert not any(sandbox.ready for sandbox in driver.runtime().sandboxes)
