"""Runs probes beside their pod's task: a timer for each that is due, a short-lived task for each that is asked.

What is probed, and what an answer means, the core says. A new verdict wakes the pod's task, which takes it into the
pod's memory; until then it holds here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from services.podworker.core.events_probe import EventAllowance, probe_event, spend
from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import PodMemory, RuntimePod
from services.podworker.core.probe_outcomes import Result
from services.podworker.core.probe_schedule import asks_at_once, first_tick, next_tick, ticks_from
from services.podworker.core.probes import (
    Found,
    Outcome,
    ProbeKey,
    Streak,
    WantedProbe,
    count,
    declared_probes,
    wanted_probes,
    with_verdict,
    with_verdicts,
)
from services.podworker.handlers.prober import Prober
from shared.kube.pod import Pod, Probe

log = logging.getLogger("podbus.podworker.probes")


_COUNTED = {"success": "successful", "warning": "successful", "failure": "failed", "error": "unknown"}
"""What kubelet's prober_probe_total calls a result."""
_UID_LABEL = 3


class PodProbes:
    """The probes of one pod."""

    def __init__(
        self, prober: Prober, pod_name: str, wake: Callable[[], None], tell: Callable[[PodEvent], None]
    ) -> None:
        self.prober = prober
        self.pod_name = pod_name
        self._wake = wake
        self._tell = tell
        self._allowance = EventAllowance()
        self._found: dict[tuple[str, str], Found] = {}
        """Verdicts that the pod's memory may not hold yet; the last of each."""
        self._loops: dict[ProbeKey, ProbeLoop] = {}
        self._pod: Pod | None = None
        self._declared: dict[ProbeKey, Probe] = {}
        self._memory: PodMemory | None = None
        self._runtime: RuntimePod | None = None

    def taken_into(self, memory: PodMemory, runtime: RuntimePod) -> PodMemory:
        """The memory with what was found since."""
        if not self._found and not memory.verdicts:
            return memory
        return with_verdicts(memory, list(self._found.values()), runtime)

    def follow(self, pod: Pod | None, memory: PodMemory, runtime: RuntimePod) -> None:
        """After a look: probe what is to be probed now, and nothing else. `memory` is what was stored."""
        if pod is not self._pod:
            self._pod = pod
            self._declared = {} if pod is None else {(c.name, kind): probe for c, kind, probe in declared_probes(pod)}
            for key in self._loops.keys() - self._declared.keys():
                self._loops.pop(key).aim(None)
        if not self._declared:
            return
        self._found = {
            key: found for key, found in self._found.items() if with_verdicts(memory, [found], runtime) is not memory
        }
        self._memory, self._runtime = self.taken_into(memory, runtime), runtime
        self._aim()

    def close(self) -> None:
        for loop in self._loops.values():
            loop.aim(None)
        self._loops.clear()
        if self._pod is not None and self._declared:
            self.prober.measures.probes.forget(_UID_LABEL, self._pod.metadata.uid)
        self._pod, self._declared = None, {}

    def _aim(self) -> None:
        if self._pod is None or self._memory is None or self._runtime is None:
            return
        wanted = wanted_probes(self._pod, self._memory, self._runtime, self.prober.node_ip)
        for key, probe in self._declared.items():
            if key not in self._loops:
                self._loops[key] = ProbeLoop(self, probe, is_adopted=key in wanted)
            self._loops[key].aim(wanted.get(key))

    def take_result(self, wanted: WantedProbe, result: Result) -> None:
        """Count it, and tell what isn't a success."""
        container, kind = wanted.key
        if self._pod is not None:
            meta, counted = self._pod.metadata, _COUNTED[result.kind]
            labels = (container, meta.namespace, meta.name, meta.uid, kind.capitalize(), counted)
            self.prober.measures.probes.add(*labels)
        if result.kind == "success":
            return
        log.debug("probe pod=%s container=%s kind=%s result=%s", self.pod_name, container, kind, result.kind)
        event = probe_event(container, kind, result)
        left = spend(self._allowance, asyncio.get_running_loop().time())
        if event is not None and left is not None:
            self._allowance = left
            self._tell(event)

    def take_verdict(self, wanted: WantedProbe, found: Found) -> None:
        """A verdict that is news wakes the pod, and may change what is probed."""
        if self._memory is None or (memory := with_verdict(self._memory, found)) is self._memory:
            return
        container, kind = wanted.key
        log.info("probed pod=%s container=%s kind=%s verdict=%s", self.pod_name, container, kind, found.verdict)
        self._memory = memory
        self._found[found.container_id, found.kind] = found
        self._wake()
        self._aim()


class ProbeLoop:
    """One probe of one container, over all instances of that. At most one run is under way."""

    def __init__(self, pod: PodProbes, probe: Probe, *, is_adopted: bool) -> None:
        self._pod = pod
        prober, now = pod.prober, self._now()
        self._base = first_tick(
            now, _period(probe), prober_age=now - prober.born_at, is_adopted=is_adopted, share=prober.rng.random()
        )
        self._earliest = self._due = now
        self._ended_at = float("-inf")
        self._target: WantedProbe | None = None
        self._container_id = ""
        self._streak = Streak()
        self._is_waiting = False
        self._run: asyncio.Task[None] | None = None

    def aim(self, wanted: WantedProbe | None) -> None:
        """Probe this from now on; None = rest."""
        before, self._target = self._target, wanted
        if wanted is None:
            self._rest()
            return
        now = self._now()
        if before is None or before.container_id != wanted.container_id:
            self._begin(wanted, now)
        elif wanted.is_unready and self._run is None and self._asks_at_once(now):
            self._run_at(now)

    def _asks_at_once(self, now: float) -> bool:
        return asks_at_once(now, earliest=self._earliest, ended_at=self._ended_at)

    def _begin(self, wanted: WantedProbe, now: float) -> None:
        self._rest()
        if self._container_id != wanted.container_id:
            self._container_id, self._streak = wanted.container_id, Streak()
        delay = wanted.not_before - self._pod.prober.clock.now()
        self._earliest = now + min(max(0.0, delay), wanted.probe.initial_delay_seconds)
        if wanted.is_unready:
            self._run_at(self._earliest)
            return
        self._wait_until(next_tick(self._base, _period(wanted.probe), earliest=self._earliest, after=float("-inf")))

    def _run_at(self, at: float) -> None:
        """Out of turn; the ticks go on from there."""
        self._base = ticks_from(at)
        self._wait_until(at)

    def _rest(self) -> None:
        self._wait_no_more()
        if self._run is not None:
            self._run.cancel()
            self._run = None

    def _wait_until(self, due: float) -> None:
        self._wait_no_more()
        self._due, self._is_waiting = due, True
        self._pod.prober.timers.add(due, self._fire)

    def _wait_no_more(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._pod.prober.timers.remove(self._due, self._fire)

    def _fire(self) -> None:
        self._is_waiting = False
        if self._target is not None:
            self._run = asyncio.create_task(self._ask(self._target))

    async def _ask(self, wanted: WantedProbe) -> None:
        try:
            result = await self._pod.prober.ask(wanted)
        except Exception:  # the boundary: one probe's fault must not end the others
            log.exception("probe broke pod=%s container=%s kind=%s", self._pod.pod_name, *wanted.key)
            result = None
        if self._run is not asyncio.current_task():
            return  # set aside at the last moment
        self._run = None
        self._ended_at = now = self._now()
        self._wait_until(next_tick(self._base, _period(wanted.probe), earliest=now, after=self._due))
        if result is not None:
            self._take(wanted, result)

    def _take(self, wanted: WantedProbe, result: Result) -> None:
        self._pod.take_result(wanted, result)
        if result.kind == "error":
            return  # counts for nothing
        outcome: Outcome = "failure" if result.kind == "failure" else "success"
        self._streak, verdict = count(self._streak, outcome, wanted.probe)
        if verdict is not None:
            found = Found(container_id=wanted.container_id, kind=wanted.key[1], verdict=verdict)
            self._pod.take_verdict(wanted, found)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _period(probe: Probe) -> float:
    return max(1, probe.period_seconds)
