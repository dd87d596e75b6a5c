"""postStart hooks: what waits for them, and what follows from their failure (lifecycle 6); hooks in labels."""

from __future__ import annotations

import json

import pytest

from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.container_config import container_config
from services.podworker.core.generate import generate_status
from services.podworker.core.hook_labels import handler_from_labels
from services.podworker.core.hook_runs import http_request
from services.podworker.core.hooks import record_hook_end
from services.podworker.core.model import PodMemory, PostStart, RuntimePod
from services.podworker.core.plan import HookRun, Plan, StartContainer
from services.podworker.core.state import begin_termination, rebase
from shared.kube import names
from shared.kube.pod import Handler, HTTPGetAction, HTTPHeader, Pod
from tests.support.builders import (
    NODE_IP,
    NOW,
    POD_IP,
    a_container,
    a_memory,
    a_node,
    a_pod,
    a_runtime,
    a_sandbox,
    exited,
    nothing,
    running,
)

HELLO = {"postStart": {"exec": {"command": ["hello"]}}}
BYE = {"preStop": {"exec": {"command": ["bye"]}}}
POD = a_pod(a_container("a", lifecycle={**HELLO, **BYE}), a_container("b"))
A, B = POD.spec.containers


def look(memory: PodMemory, runtime: RuntimePod, *, at: float = 0.0, pod: Pod = POD) -> Plan:
    return compute_pod_actions(pod, memory, runtime, now=NOW + at)


def starts(plan: Plan) -> list[str]:
    return [action.name for action in plan.actions if isinstance(action, StartContainer)]


def test_the_next_container_waits_for_the_hook() -> None:
    """H01."""
    assert starts(look(a_memory(), nothing())) == ["a"]
    plan = look(a_memory(), a_runtime(running(A)))
    assert (starts(plan), [run.kind for run in plan.hooks]) == ([], ["postStart"])
    memory, told = record_hook_end(plan.memory, plan.hooks[0], "")
    after = look(memory, a_runtime(running(A)))
    assert (starts(after), after.hooks, told) == (["b"], (), ())


def test_it_is_wanted_at_each_look_until_it_has_ended() -> None:
    """So it is run again by a worker that finds it "running"."""
    plan = look(a_memory(post_starts={"a-0": PostStart(state="running")}), a_runtime(running(A)))
    assert [run.container_id for run in plan.hooks] == ["a-0"]


def test_each_instance_has_its_own() -> None:
    memory = a_memory(post_starts={"a-0": PostStart(state="done")})
    plan = look(memory, a_runtime(running(A, 1), exited(A, 1)))
    assert [run.container_id for run in plan.hooks] == ["a-1"]


def test_a_container_that_has_ended_has_none() -> None:
    memory = a_memory(post_starts={"a-0": PostStart(state="running")})
    assert look(memory, a_runtime(exited(A, 1))).hooks == ()


def test_it_is_given_up_when_the_pod_is_told_to_end() -> None:
    """A deletion during a long hook is handled at once."""
    memory = look(a_memory(), a_runtime(running(A))).memory
    plan = look(begin_termination(memory, NOW, 30, "removed"), a_runtime(running(A)))
    assert [run.kind for run in plan.hooks] == ["preStop"]


def test_a_sleep_holds_the_next_container_until_a_stored_instant() -> None:
    pod = a_pod(a_container("a", lifecycle={"postStart": {"sleep": {"seconds": 3}}}), a_container("b"))
    runtime = a_runtime(running(pod.spec.containers[0]))
    plan = look(a_memory(), runtime, pod=pod)
    assert (starts(plan), plan.hooks, plan.wake_at) == ([], (), NOW + 3)
    assert look(plan.memory, runtime, at=2, pod=pod).wake_at == NOW + 3
    assert starts(look(plan.memory, runtime, at=3, pod=pod)) == ["b"]
    assert look(rebase(plan.memory, 3600), runtime, at=3601, pod=pod).wake_at == NOW + 3603


def failed() -> tuple[PodMemory, Plan]:
    """Memory and plan after the hook has failed."""
    plan = look(a_memory(), a_runtime(running(A)))
    memory, told = record_hook_end(plan.memory, plan.hooks[0], "it says no")
    assert [(event.type, event.reason, event.message) for event in told] == [
        ("Warning", "FailedPostStartHook", "PostStartHook failed")
    ]
    return memory, look(memory, a_runtime(running(A)))


def test_after_a_failure_the_container_is_stopped_with_its_pre_stop() -> None:
    _, plan = failed()
    assert [run.kind for run in plan.hooks] == ["preStop"]
    assert (plan.memory.stops["a-0"].reason, plan.memory.stops["a-0"].deadline) == ("postStart", NOW + 30)
    assert [(event.reason, event.message) for event in plan.events] == [("Killing", "FailedPostStartHook")]


def test_later_containers_start_all_the_same() -> None:
    assert starts(failed()[1]) == ["b"]


def test_the_failure_is_told_once() -> None:
    _, plan = failed()
    again = look(plan.memory, a_runtime(running(A)), at=1)
    assert again.events == ()


def test_the_status_says_why_it_waits() -> None:
    memory, plan = failed()
    for shown in (memory, plan.memory):
        status = generate_status(POD, shown, a_runtime(running(A)), node_ip=NODE_IP, now=NOW)
        waiting = status.container_statuses[0].state.waiting
        assert waiting is not None
        assert (waiting.reason, waiting.message) == ("PostStartHookError", "it says no")


@pytest.mark.parametrize(("policy", "phase"), [("Always", "Running"), ("Never", "Failed")])
def test_then_the_restart_policy_decides(policy: str, phase: str) -> None:
    pod = a_pod(a_container("a", lifecycle=HELLO), restartPolicy=policy)
    plan = look(a_memory(), a_runtime(running(pod.spec.containers[0])), pod=pod)
    memory, _ = record_hook_end(plan.memory, plan.hooks[0], "no")
    memory = look(memory, a_runtime(running(pod.spec.containers[0])), pod=pod).memory
    ended = a_runtime(exited(pod.spec.containers[0], 143))
    assert starts(look(memory, ended, pod=pod)) == (["a"] if policy == "Always" else [])
    assert generate_status(pod, memory, ended, node_ip=NODE_IP, now=NOW).phase == phase


def test_hooks_of_containers_that_are_gone_are_forgotten() -> None:
    memory = a_memory(post_starts={"gone": PostStart(state="done")})
    assert look(memory, a_runtime(running(B))).memory.post_starts == {}


# -- addresses -----------------------------------------------------------------------------------------------


def hook_of(action: dict[str, object], runtime: RuntimePod | None = None) -> HookRun:
    pod = a_pod(
        a_container(lifecycle={"postStart": {"httpGet": action}}, ports=[{"name": "web", "containerPort": 8080}])
    )
    container = pod.spec.containers[0]
    shown = a_runtime(running(container)) if runtime is None else runtime
    (run,) = look(a_memory(pod), shown, pod=pod).hooks
    return run


def url_of(action: dict[str, object]) -> str:
    run = hook_of(action)
    assert run.handler.http_get is not None
    return http_request(run, run.handler.http_get)[0]


@pytest.mark.parametrize(
    ("action", "url"),
    [
        ({"port": 80}, f"http://{POD_IP}:80/"),
        ({"port": "web", "path": "/a?b=c", "scheme": "HTTPS"}, f"https://{POD_IP}:8080/a?b=c"),
        ({"port": "81", "host": "::1"}, "http://[::1]:81/"),
    ],
)
def test_a_hooks_url(action: dict[str, object], url: str) -> None:
    assert url_of(action) == url


def test_a_port_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="nope"):
        url_of({"port": "nope"})


@pytest.mark.parametrize("given", [[], [HTTPHeader(name="user-agent", value="mine")]])
def test_a_hook_says_who_asks(given: list[HTTPHeader]) -> None:
    action = HTTPGetAction(port=80, host="h", http_headers=given)
    run = HookRun(container_id="c", name="c", kind="preStop", handler=Handler(http_get=action))
    headers = {name.lower(): value for name, value in http_request(run, action)[1]}
    assert headers["user-agent"] == ("mine" if given else "kube-lifecycle/1.36")


def test_on_the_nodes_network_a_hook_goes_to_the_loopback_until_the_nodes_address_is_known() -> None:
    pod = a_pod(a_container(lifecycle={"postStart": {"httpGet": {"port": 80}}}), hostNetwork=True)
    runtime = a_runtime(running(pod.spec.containers[0]), sandboxes=(a_sandbox(host_network=True, ips=()),))
    for memory, host in ((a_memory(pod), "127.0.0.1"), (a_memory(pod, ips=(NODE_IP,)), NODE_IP)):
        (run,) = look(memory, runtime, pod=pod).hooks
        assert run.handler.http_get is not None
        assert run.handler.http_get.host == host


# -- labels --------------------------------------------------------------------------------------------------


def labels_of(container: dict[str, object], *, sidecar: bool = False) -> dict[str, str]:
    inits = [a_container("first"), {**container, "restartPolicy": "Always"}] if sidecar else []
    pod = a_pod(a_container("main") if sidecar else container, initContainers=inits)
    spec = pod.spec.init_containers[1] if sidecar else pod.spec.containers[0]
    return container_config(pod, spec, a_node(), 0, sandbox_id="s", source="file").labels


def test_the_pre_stop_hook_is_in_a_label_as_the_kubelet_writes_it() -> None:
    """D01."""
    hook = {"preStop": {"httpGet": {"path": "/x", "port": "web"}}}
    label = labels_of(a_container(lifecycle=hook))["annotation.io.kubernetes.container.preStopHandler"]
    assert json.loads(label) == {"httpGet": {"path": "/x", "port": "web", "scheme": "HTTP"}}
    exec_label = labels_of(a_container(lifecycle=BYE))[names.ANNOTATION_PRE_STOP]
    assert exec_label == '{"exec":{"command":["bye"]}}'
    assert names.ANNOTATION_PRE_STOP not in labels_of(a_container(lifecycle=HELLO))


def test_it_is_read_back_with_its_port_as_a_number() -> None:
    hook = {"preStop": {"httpGet": {"path": "/x", "port": "web"}}}
    labels = labels_of(a_container(lifecycle=hook, ports=[{"name": "web", "containerPort": 8080}]))
    read = handler_from_labels(labels[names.ANNOTATION_PRE_STOP], labels[names.ANNOTATION_PORTS])
    assert read == Handler(http_get=HTTPGetAction(path="/x", port=8080))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"exec": 1}'])
def test_a_label_that_nobody_can_read_is_no_hook(text: str) -> None:
    assert handler_from_labels(text, "") is None


def test_a_sidecars_place_is_in_a_label() -> None:
    assert labels_of(a_container("s"), sidecar=True)[names.LABEL_SIDECAR] == "1"
    assert names.LABEL_SIDECAR not in labels_of(a_container())


def test_the_stop_signal_of_the_definition_goes_to_the_engine() -> None:
    pod = a_pod(a_container(lifecycle={"stopSignal": "SIGUSR1"}))
    config = container_config(pod, pod.spec.containers[0], a_node(), 0, sandbox_id="s", source="file")
    assert config.stop_signal == "SIGUSR1"
