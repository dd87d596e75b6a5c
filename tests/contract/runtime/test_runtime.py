"""What podworker relies on of a container runtime: one suite for Docker and for the model of it."""

from __future__ import annotations

import asyncio

import pytest

from services.podworker.core.container_config import ContainerUpdate
from services.podworker.core.image_layers import weight
from services.podworker.core.model import RuntimeContainer
from services.podworker.core.pod_limits import PodLimits
from services.podworker.ports import ImagePullFailed, RuntimeRefused
from tests.contract.runtime.engines import STUBBORN, Engine, config_of, new_pod, run_pod, sandbox_of
from tests.support.builders import a_container
from tests.support.eventually import eventually_async


async def newest(engine: Engine, uid: str, name: str = "c") -> RuntimeContainer:
    pod = await engine.runtime.pod(uid)
    assert pod is not None
    found = pod.newest(name)
    assert found is not None
    return found


async def exited(engine: Engine, uid: str) -> RuntimeContainer:
    async def check() -> RuntimeContainer | None:
        found = await newest(engine, uid)
        return found if found.state == "exited" else None

    found: RuntimeContainer = await eventually_async(check, within=10)
    return found


async def test_a_started_pod_is_shown_with_what_its_labels_say(engine: Engine) -> None:
    pod = new_pod()
    sandbox_id, (container_id,) = await run_pod(engine, pod)
    shown = (await engine.runtime.list_pods())[pod.metadata.uid]
    assert (shown.namespace, shown.name, shown.grace_seconds) == ("default", pod.metadata.name, 30)
    (sandbox,), (container,) = shown.sandboxes, shown.containers
    assert (sandbox.id, sandbox.attempt, sandbox.ready, sandbox.host_network) == (sandbox_id, 0, True, False)
    assert sandbox.ips and sandbox.pid >= 0
    config = config_of(engine, pod, sandbox_id)
    assert (container.id, container.name, container.attempt, container.state) == (
        container_id,
        "c",
        0,
        "running",
    )
    assert (container.sandbox_id, container.image) == (sandbox_id, "busybox:1.36")
    assert container.hash == config.labels["annotation.io.kubernetes.container.hash"]
    assert container.started_at is not None and container.started_at >= container.created_at
    assert container.finished_at is None
    assert container.image_id.startswith("docker")


async def test_one_pod_is_shown_as_the_list_shows_it(engine: Engine) -> None:
    pod = new_pod()
    await run_pod(engine, pod)
    assert await engine.runtime.pod(pod.metadata.uid) == (await engine.runtime.list_pods())[pod.metadata.uid]


async def test_a_pod_that_is_not_there_is_none(engine: Engine) -> None:
    assert await engine.runtime.pod("0" * 32) is None


async def test_an_exit_code_is_shown_with_its_times(engine: Engine) -> None:
    pod = new_pod(a_container(command=["sh", "-c", "exit 3"]))
    await run_pod(engine, pod)
    container = await exited(engine, pod.metadata.uid)
    assert (container.exit_code, container.oom_killed, container.cannot_run) == (3, False, False)
    assert container.started_at is not None and container.finished_at is not None
    assert container.finished_at >= container.started_at


async def test_a_running_container_is_given_other_resources(engine: Engine) -> None:
    """More and less; a quota that is taken away is gone."""
    amounts = {"cpu": "100m", "memory": "32Mi"}
    pod = new_pod(a_container(resources={"requests": amounts, "limits": amounts}))
    sandbox_id, (container_id,) = await run_pod(engine, pod)
    config = config_of(engine, pod, sandbox_id)
    before = await newest(engine, pod.metadata.uid)
    assert (before.cpu_shares, before.cpu_quota, before.memory) == (102, 10_000, 32 << 20)
    for shares, quota, memory in ((204, 20_000, 64 << 20), (51, 5000, 16 << 20), (102, 0, 16 << 20)):
        limits = PodLimits(cpu_shares=shares, cpu_quota=quota, memory=memory)
        update = ContainerUpdate(
            cpu_shares=shares,
            cpu_quota=quota,
            memory=memory,
            cgroup_parent=config.cgroup_parent,
            pod_limits=limits,
        )
        await engine.runtime.update_container(container_id, update)
        after = await newest(engine, pod.metadata.uid)
        assert (after.cpu_shares, after.cpu_quota, after.memory) == (shares, quota, memory)
        assert (after.id, after.state) == (container_id, "running")


async def test_the_stop_signal_ends_a_container_that_heeds_it(engine: Engine) -> None:
    pod = new_pod()
    _, (container_id,) = await run_pod(engine, pod)
    await engine.runtime.signal_container(container_id, "")
    assert (await exited(engine, pod.metadata.uid)).exit_code == 143


async def test_a_container_that_ignores_the_stop_signal_ends_by_kill(engine: Engine) -> None:
    pod = new_pod(a_container(command=STUBBORN), annotations={"model/ignore-term": "true"})
    _, (container_id,) = await run_pod(engine, pod)
    await engine.runtime.signal_container(container_id, "SIGTERM")
    assert (await newest(engine, pod.metadata.uid)).state == "running"
    await engine.runtime.signal_container(container_id, "SIGKILL")
    assert (await exited(engine, pod.metadata.uid)).exit_code == 137


async def test_signalling_an_ended_or_removed_container_is_success(engine: Engine) -> None:
    pod = new_pod()
    _, (container_id,) = await run_pod(engine, pod)
    await engine.runtime.signal_container(container_id, "SIGKILL")
    await exited(engine, pod.metadata.uid)
    await engine.runtime.signal_container(container_id, "SIGTERM")
    await engine.runtime.remove_container(container_id)
    await engine.runtime.signal_container(container_id, "SIGTERM")


async def test_a_created_container_is_not_running_and_has_no_times(engine: Engine) -> None:
    pod = new_pod()
    sandbox_id = await engine.runtime.run_pod_sandbox(sandbox_of(engine, pod))
    await engine.runtime.create_container(config_of(engine, pod, sandbox_id), sandbox_id)
    container = await newest(engine, pod.metadata.uid)
    assert (container.state, container.started_at, container.finished_at) == ("created", None, None)


async def test_creating_and_starting_twice_is_once(engine: Engine) -> None:
    pod = new_pod()
    sandbox_id, (container_id,) = await run_pod(engine, pod)
    config = config_of(engine, pod, sandbox_id)
    assert await engine.runtime.create_container(config, sandbox_id) == container_id
    await engine.runtime.start_container(container_id)
    shown = await engine.runtime.pod(pod.metadata.uid)
    assert shown is not None and len(shown.containers) == 1


async def test_eight_creators_of_one_attempt_make_one_container(engine: Engine) -> None:
    """The name is the fence between two workers that both believe they own the pod."""
    pod = new_pod()
    sandbox_id = await engine.runtime.run_pod_sandbox(sandbox_of(engine, pod))
    config = config_of(engine, pod, sandbox_id)
    ids = await asyncio.gather(*(engine.runtime.create_container(config, sandbox_id) for _ in range(8)))
    assert len(set(ids)) == 1


async def test_an_attempt_that_has_run_is_never_run_again(engine: Engine) -> None:
    """A caller that asks for it hasn't seen it yet: it is told to look again."""
    pod = new_pod(a_container(command=["sh", "-c", "exit 0"]))
    sandbox_id, (container_id,) = await run_pod(engine, pod)
    await exited(engine, pod.metadata.uid)
    with pytest.raises(RuntimeRefused) as refused:
        await engine.runtime.create_container(config_of(engine, pod, sandbox_id), sandbox_id)
    assert refused.value.reason == "CreateContainerError"
    assert (await newest(engine, pod.metadata.uid)).id == container_id


async def test_attempts_are_shown_newest_first(engine: Engine) -> None:
    pod = new_pod(a_container(command=["sh", "-c", "exit 1"]))
    sandbox_id, _ = await run_pod(engine, pod)
    await exited(engine, pod.metadata.uid)
    second = config_of(engine, pod, sandbox_id, attempt=1)
    second_id = await engine.runtime.create_container(second, sandbox_id)
    await engine.runtime.start_container(second_id)
    shown = await engine.runtime.pod(pod.metadata.uid)
    assert shown is not None
    assert [container.attempt for container in shown.containers] == [1, 0]


async def test_a_refused_start_leaves_a_container_that_never_ran(engine: Engine) -> None:
    """golden a08: the text is the engine's, in the refusal and in the container."""
    pod = new_pod(
        a_container(command=["/no/such/thing"]),
        annotations={"model/start-error": 'exec: "/no/such/thing": no such file or directory'},
    )
    with pytest.raises(RuntimeRefused) as refused:
        await run_pod(engine, pod)
    assert refused.value.reason == "RunContainerError"
    assert 'exec: "/no/such/thing"' in refused.value.message
    container = await newest(engine, pod.metadata.uid)
    assert (container.state, container.cannot_run, container.exit_code) == ("exited", True, 127)
    assert (container.started_at, container.finished_at) == (None, None)
    assert 'exec: "/no/such/thing"' in container.error


async def test_a_missing_image_refuses_the_create(engine: Engine) -> None:
    pod = new_pod(a_container(image="podbus.test/absent:1"))
    with pytest.raises(RuntimeRefused) as refused:
        await run_pod(engine, pod)
    assert refused.value.reason == "CreateContainerError"
    assert "No such image: podbus.test/absent:1" in refused.value.message


async def test_a_running_sandbox_is_kept(engine: Engine) -> None:
    config = sandbox_of(engine, new_pod())
    first = await engine.runtime.run_pod_sandbox(config)
    assert await engine.runtime.run_pod_sandbox(config) == first


async def test_a_dead_sandbox_of_the_same_name_is_replaced(engine: Engine) -> None:
    pod = new_pod()
    config = sandbox_of(engine, pod)
    first = await engine.runtime.run_pod_sandbox(config)
    await engine.runtime.stop_pod_sandbox(first)
    second = await engine.runtime.run_pod_sandbox(config)
    assert second != first
    shown = await engine.runtime.pod(pod.metadata.uid)
    assert shown is not None and [(s.id, s.ready) for s in shown.sandboxes] == [(second, True)]


async def test_a_stopped_sandbox_stays_as_the_pods_record(engine: Engine) -> None:
    pod = new_pod()
    sandbox_id = await engine.runtime.run_pod_sandbox(sandbox_of(engine, pod))
    await engine.runtime.stop_pod_sandbox(sandbox_id)
    await engine.runtime.stop_pod_sandbox(sandbox_id)
    shown = await engine.runtime.pod(pod.metadata.uid)
    assert shown is not None
    assert [(s.id, s.ready, s.ips) for s in shown.sandboxes] == [(sandbox_id, False, ())]


async def test_nothing_starts_in_a_dead_sandbox(engine: Engine) -> None:
    pod = new_pod()
    sandbox_id = await engine.runtime.run_pod_sandbox(sandbox_of(engine, pod))
    container_id = await engine.runtime.create_container(config_of(engine, pod, sandbox_id), sandbox_id)
    await engine.runtime.stop_pod_sandbox(sandbox_id)
    with pytest.raises(RuntimeRefused, match="cannot join network of a non running container"):
        await engine.runtime.start_container(container_id)


async def test_a_removed_pod_is_gone_however_often_it_is_removed(engine: Engine) -> None:
    pod = new_pod()
    sandbox_id, (container_id,) = await run_pod(engine, pod)
    for _ in range(2):
        await engine.runtime.remove_container(container_id)
        await engine.runtime.remove_pod_sandbox(sandbox_id)
        await engine.runtime.stop_pod_sandbox(sandbox_id)
        await engine.runtime.remove_pod_leftovers(pod.metadata.uid)
    assert await engine.runtime.pod(pod.metadata.uid) is None
    assert pod.metadata.uid not in await engine.runtime.list_pods()


async def test_a_new_worker_sees_what_the_old_one_started(engine: Engine) -> None:
    """Labels are the only database."""
    pod = new_pod(terminationGracePeriodSeconds=7)
    await run_pod(engine, pod)
    seen = await engine.runtime.pod(pod.metadata.uid)
    assert seen is not None and seen.grace_seconds == 7
    assert await engine.restarted().pod(pod.metadata.uid) == seen


async def test_a_pod_that_something_happens_to_is_hinted_at(engine: Engine) -> None:
    pod = new_pod()
    hints: list[str | None] = []

    async def collect() -> None:
        async for hint in engine.runtime.changes():
            hints.append(hint)

    reader = asyncio.create_task(collect())
    # The first hint means that the stream is open: list everything.
    await eventually_async(lambda: hints == [None], within=10)
    _, (container_id,) = await run_pod(engine, pod)
    await eventually_async(lambda: pod.metadata.uid in hints, within=10)
    hints.clear()
    await engine.runtime.signal_container(container_id, "SIGKILL")
    await eventually_async(lambda: pod.metadata.uid in hints, within=10)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)


async def test_a_local_image_is_found_by_its_reference(engine: Engine) -> None:
    found = await engine.images.image("busybox:1.36")
    assert found is not None and "busybox:1.36" in found.names and found.size > 0
    assert await engine.images.image("podbus.test/absent:1") is None
    assert found in await engine.images.images()


async def test_the_layers_of_an_image_weigh_as_much_as_it(engine: Engine) -> None:
    found = await engine.images.image("busybox:1.36")
    assert found is not None
    layers = await engine.images.image_layers(found.id)
    assert layers is not None and weight([layers]) == weight([layers, layers]) == found.size
    assert await engine.images.image_layers(f"sha256:{'0' * 64}") is None


async def test_a_pull_that_fails_says_what_the_registry_said(engine: Engine) -> None:
    with pytest.raises(ImagePullFailed) as failed:
        await engine.images.pull_image("127.0.0.1:1/absent:1", lambda _current, _total: None)
    assert failed.value.reason == "ErrImagePull"
    assert failed.value.message
