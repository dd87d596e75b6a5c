"""A pod's probes over time: when each is asked, what is found, and what wakes the pod."""

from __future__ import annotations

import asyncio

from services.podworker.core.model import RuntimePod, Termination, Verdicts
from services.podworker.ports import RuntimeRefused, RuntimeUnavailable
from shared.kube.pod import Pod
from tests.support.builders import NOW, a_container, a_pod, a_runtime, running
from tests.support.probed_pod import START, Player, World, ask, lived, one_running
from tests.support.virtual_loop import run_virtually


def test_readiness_is_asked_at_once_then_each_period() -> None:
    """kubelet 1.36: the status sync of a started, unready container asks at once."""
    pod, runtime = one_running(readinessProbe=ask("ok", periodSeconds=10))
    world = World()
    player = lived(world, 35, pod=pod, runtime=runtime, before=2.5)
    assert world.times("ok") == [0, 10, 20, 30]
    assert player.changes == [(0, {"c-0": Verdicts(readiness="success")})]


def test_liveness_is_asked_on_the_ticks_of_the_pods_first_sight() -> None:
    """kubelet: the first real probe is up to one period after the start."""
    pod, runtime = one_running(livenessProbe=ask("ok", periodSeconds=10))
    world = World()
    player = lived(world, 35, pod=pod, runtime=runtime, before=2.5)
    assert world.times("ok") == [7.5, 17.5, 27.5]
    assert player.changes == []


def test_nothing_is_asked_during_the_initial_delay() -> None:
    """P13"""
    pod, runtime = one_running(
        readinessProbe=ask("ready", periodSeconds=3, initialDelaySeconds=8),
        livenessProbe=ask("live", periodSeconds=3, initialDelaySeconds=8),
    )
    world = World()
    lived(world, 16, pod=pod, runtime=runtime, before=0.5)
    assert world.times("ready") == [8, 11, 14]
    assert world.times("live") == [8.5, 11.5, 14.5]


def test_a_clock_that_was_set_back_does_not_lengthen_the_initial_delay() -> None:
    pod, runtime = one_running(readinessProbe=ask("ready", initialDelaySeconds=5))
    world = World(wall=NOW - 86400)
    lived(world, 10, pod=pod, runtime=runtime, before=0.5)
    assert world.times("ready") == [5]


def test_startup_comes_first_and_is_never_asked_again() -> None:
    """P10"""
    pod, runtime = one_running(
        startupProbe=ask("up", periodSeconds=1, failureThreshold=10),
        livenessProbe=ask("live", periodSeconds=1, failureThreshold=1),
        readinessProbe=ask("ready", periodSeconds=1),
    )
    world = World(answer=lambda what: int(what == "up" and len(world.times("up")) < 4))
    player = lived(world, 10, pod=pod, runtime=runtime, before=0.5)
    assert world.times("up") == [0.5, 1.5, 2.5, 3.5]
    assert min(world.times("live")) >= 3.5
    assert min(world.times("ready")) == 3.5
    assert player.memory.verdicts == {"c-0": Verdicts(startup="success", readiness="success")}


def test_a_container_that_never_starts_up_is_given_up_after_its_threshold() -> None:
    """P11"""
    pod, runtime = one_running(startupProbe=ask("up", periodSeconds=2, failureThreshold=3))
    world = World(answer=lambda what: 1)
    player = lived(world, 60, pod=pod, runtime=runtime, before=1)
    assert world.times("up") == [1, 3, 5]
    assert player.changes == [(5, {"c-0": Verdicts(startup="failure")})]
    assert [e.message for e in player.events] == ["Startup probe failed: said"] * 3


def test_liveness_is_on_hold_after_its_verdict_and_starts_anew_with_a_new_container() -> None:
    """P02"""
    pod, runtime = one_running(livenessProbe=ask("live", periodSeconds=1, failureThreshold=3))
    world = World(answer=lambda what: 1)

    async def main() -> Player:
        player = Player(world, pod, runtime)
        await player.live(20)
        assert [v for _, v in player.changes] == [{"c-0": Verdicts(liveness="failure")}]
        assert len(world.asked) == 3
        again = running(pod.spec.containers[0], 1, started_at=NOW + 20)
        player.runtime = a_runtime(again)
        await player.live(10)
        player.probes.close()
        return player

    player = run_virtually(main)
    assert len(world.asked) == 6
    assert player.memory.verdicts == {"c-1": Verdicts(liveness="failure")}


def test_results_of_an_old_container_do_not_count_for_the_new_one() -> None:
    """Unlike the kubelet."""
    pod, runtime = one_running(livenessProbe=ask("live", periodSeconds=1, failureThreshold=3))
    world = World(answer=lambda what: 1)

    async def main() -> None:
        player = Player(world, pod, runtime)
        while len(world.asked) < 2:
            await player.live(1)
        player.runtime = a_runtime(running(pod.spec.containers[0], 1, started_at=NOW))
        while len(world.asked) < 4:
            await player.live(1)
        assert player.memory.verdicts == {}
        player.probes.close()

    run_virtually(main)


def test_a_hung_command_counts_as_failed_and_never_overlaps_itself() -> None:
    """P03, case 05"""
    pod, runtime = one_running(readinessProbe=ask("hang", periodSeconds=1, timeoutSeconds=5, failureThreshold=1))
    world = World(answer=lambda what: None)
    player = lived(world, 30, pod=pod, runtime=runtime)
    assert world.most_under_way == 1
    assert player.changes == []  # readiness counts as failed from the beginning
    assert player.events[0].message == 'Readiness probe failed: command timed out: "hang" timed out after 5s'


def test_a_connection_that_hangs_counts_as_failed_after_the_timeout() -> None:
    pod, runtime = one_running(readinessProbe={"tcpSocket": {"port": 81}, "periodSeconds": 10, "timeoutSeconds": 2})
    world = World(answer=lambda what: None)
    player = lived(world, 5, pod=pod, runtime=runtime)
    assert world.cancelled == 1
    assert [e.message for e in player.events] == ["Readiness probe failed: dial tcp 172.17.0.2:81: i/o timeout"]


def test_a_failed_probe_is_asked_once_and_one_that_errs_three_times() -> None:
    pod, runtime = one_running(readinessProbe=ask("odd", periodSeconds=10))
    world = World(answer=lambda what: RuntimeRefused("ExecError", "no such file"))
    player = lived(world, 5, pod=pod, runtime=runtime)
    assert len(world.asked) == 3
    assert [e.message for e in player.events] == ["Readiness probe errored and resulted in unknown state: no such file"]


def test_an_error_counts_for_nothing() -> None:
    """One failure, an error, one more failure: two failures in a row."""
    pod, runtime = one_running(livenessProbe=ask("x", periodSeconds=10, failureThreshold=2))
    script: list[int | Exception] = [1, *[RuntimeRefused("ExecError", "odd")] * 3, 1]
    world = World(answer=lambda what: script.pop(0) if script else 0)
    player = lived(world, 45, pod=pod, runtime=runtime, before=1)
    assert player.memory.verdicts == {"c-0": Verdicts(liveness="failure")}


def test_an_engine_that_is_away_is_not_the_containers_fault() -> None:
    pod, runtime = one_running(livenessProbe=ask("x", periodSeconds=1, failureThreshold=1))
    world = World(answer=lambda what: RuntimeUnavailable("away"))
    player = lived(world, 10, pod=pod, runtime=runtime, before=0.5)
    assert (player.events, player.changes, len(world.asked)) == ([], [], 10)


def test_a_redirect_that_is_left_is_a_warning_and_a_success() -> None:
    pod, runtime = one_running(readinessProbe={"httpGet": {"port": 80}})
    world = World(answer=lambda what: 302)
    player = lived(world, 5, pod=pod, runtime=runtime)
    assert player.memory.verdicts == {"c-0": Verdicts(readiness="success")}
    assert [e.reason for e in player.events] == ["ProbeWarning"]


def test_a_grpc_probe_asks_for_its_service() -> None:
    pod, runtime = one_running(readinessProbe={"grpc": {"port": 9, "service": "shop"}})
    world = World()
    assert lived(world, 5, pod=pod, runtime=runtime).memory.verdicts == {"c-0": Verdicts(readiness="success")}
    assert world.times("shop") == [0]


def test_readiness_flips_after_its_thresholds_and_only_then_wakes_the_pod() -> None:
    """P01"""
    pod, runtime = one_running(readinessProbe=ask("x", periodSeconds=1, failureThreshold=3))
    world = World(answer=lambda what: int(5 <= world.loop_time - START < 12))
    player = lived(world, 20, pod=pod, runtime=runtime, before=0.5)
    assert [(at, v["c-0"].readiness) for at, v in player.changes] == [(0, "success"), (7, "failure"), (12, "success")]


def test_during_termination_readiness_goes_on_and_liveness_stops() -> None:
    pod, runtime = one_running(readinessProbe=ask("ready", periodSeconds=1), livenessProbe=ask("live", periodSeconds=1))
    world = World()
    ending = Termination(at=NOW, grace=30, reason="removed")
    lived(world, 4.5, pod=pod, runtime=runtime, termination=ending)
    assert world.times("live") == []
    assert len(world.times("ready")) == 5


def test_a_new_owner_goes_on_from_what_is_stored() -> None:
    """Case 15: startup isn't asked again, and Ready doesn't flap."""
    pod, runtime = one_running(startupProbe=ask("up", periodSeconds=1), readinessProbe=ask("ready", periodSeconds=10))
    world = World()
    stored = {"c-0": Verdicts(startup="success", readiness="success")}
    player = lived(world, 20, pod=pod, runtime=runtime, verdicts=stored)
    assert world.times("up") == []
    assert len(world.times("ready")) == 2
    assert player.changes == []


def test_what_many_pods_would_ask_at_once_after_a_change_of_owner_is_spread() -> None:
    firsts = set()
    for seed in range(8):
        pod, runtime = one_running(livenessProbe=ask("live", periodSeconds=10))
        world = World()

        async def main(pod: Pod = pod, runtime: RuntimePod = runtime, world: World = world, seed: int = seed) -> None:
            player = Player(world, pod, runtime)
            player.probes.prober.rng.seed(seed)
            await player.live(10)
            player.probes.close()

        run_virtually(main)
        firsts.add(world.times("live")[0])
    assert len(firsts) > 5


def test_looks_at_an_unready_container_ask_at_most_once_a_second() -> None:
    pod, runtime = one_running(readinessProbe=ask("x", periodSeconds=60))
    world = World(answer=lambda what: 1)

    async def main() -> None:
        player = Player(world, pod, runtime)
        for _ in range(50):  # five seconds full of looks
            await player.live(0.1)
        player.probes.close()

    run_virtually(main)
    assert 4 <= len(world.asked) <= 6


def test_a_pod_that_goes_to_another_worker_is_not_asked_any_more() -> None:
    pod, runtime = one_running(readinessProbe=ask("hang", periodSeconds=1, timeoutSeconds=60))
    world = World(answer=lambda what: None)

    async def main() -> None:
        player = Player(world, pod, runtime)
        await player.live(5)
        player.probes.close()
        await asyncio.sleep(100)

    run_virtually(main)
    assert (len(world.asked), world.cancelled, world.under_way) == (1, 1, 0)


def test_a_verdict_that_no_look_has_taken_yet_is_taken_once() -> None:
    pod, runtime = one_running(startupProbe=ask("up", periodSeconds=1), readinessProbe=ask("ready", periodSeconds=1))
    world = World()

    async def main() -> Player:
        player = Player(world, pod, runtime)
        player.look()
        await asyncio.sleep(5)  # the pod's task is busy: what was found holds here meanwhile
        assert len(world.times("up")) == 1
        assert len(world.times("ready")) >= 3
        player.look()
        player.look()
        player.probes.close()
        return player

    player = run_virtually(main)
    assert [v for _, v in player.changes] == [{"c-0": Verdicts(startup="success", readiness="success")}]


def test_probes_that_are_due_together_share_a_wake_up() -> None:
    """All ticks fall on tenths of a second."""
    pod = a_pod(*(a_container(f"c{n}", readinessProbe=ask(f"x{n}", periodSeconds=1)) for n in range(40)))
    instances = [running(c, started_at=NOW) for c in pod.spec.containers]
    stored = {instance.id: Verdicts(readiness="success") for instance in instances}
    world = World()
    lived(world, 30, pod=pod, runtime=a_runtime(*instances), verdicts=stored)
    instants = {at for _, at in world.asked}
    assert len(world.asked) >= 40 * 29
    assert {round(at * 10) / 10 for at in instants} == instants
    assert 30 < len(instants) <= 300
