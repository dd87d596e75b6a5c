"""Does what a plan says, in its order, and puts what came of it into the pod's memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec.structs import replace

from services.podworker.core import events_text
from services.podworker.core.container_config import (
    WITHHELD,
    ContainerInputs,
    ContainerUpdate,
    container_config,
    sandbox_config,
)
from services.podworker.core.deadline import deadline_of
from services.podworker.core.devices import devices_of
from services.podworker.core.dns import dns_events
from services.podworker.core.host_names import hostname_fault
from services.podworker.core.model import PodMemory
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
    UpdateContainer,
)
from services.podworker.core.pod_limits import pod_limits
from services.podworker.core.resize import record_resize_failed
from services.podworker.core.resources import cgroup_parent
from services.podworker.core.results import (
    CREATE_CONTAINER_CONFIG_ERROR,
    FAILED_CREATE_POD_SANDBOX,
    FAILED_MOUNT,
    record_done,
    record_sandbox_failed,
    record_start_failed,
)
from services.podworker.core.security_context import non_root_fault
from services.podworker.core.volumes import VolumeFault
from services.podworker.handlers.executor import Executor, HeldPermit, Outcome, Progress
from services.podworker.handlers.measures import container_type
from services.podworker.handlers.pulling import PlanImages
from services.podworker.ports import (
    RuntimeRefused,
)
from shared.kube.names import LABEL_PRIVATE_COMMAND, SANDBOX_CONTAINER
from shared.kube.pod import Container, Pod, container_named

log = logging.getLogger("podbus.podworker.execute")

_NEEDS_PERMIT = (CreateSandbox, StartContainer, RemoveContainer, RemoveSandbox, StopSandbox)
_ENDS = (Signal, Kill)
"""They come first, and wait for no permit."""
_ALSO_AFTER_A_REFUSAL = (Signal, Kill, RemoveContainer)


class Execution:
    """One plan of one pod. `outcome` holds what came of it, also after an error was raised."""

    def __init__(
        self, executor: Executor, pod: Pod | None, sandbox_id: str, memory: PodMemory, progress: Progress
    ) -> None:
        self._with = executor
        self._pod = pod
        self._sandbox_id = sandbox_id
        self._volumes_are_up = False
        self._permit = HeldPermit(executor.permits)
        self.outcome = Outcome(memory)
        self._images = PlanImages(executor, pod, self.outcome, self._permit, progress)

    async def run(self, plan: Plan) -> None:
        """Look again later when it raises RuntimeUnavailable: the engine went away; or RuntimeRefused: it would not end
        or remove something."""
        try:
            await self._act_on(sorted(plan.actions, key=lambda action: not isinstance(action, _ENDS)))
        finally:
            self._permit.release()

    def give_up(self) -> None:
        """The pod is to end, or to go on elsewhere: nothing starts any more, and no pull is waited for."""
        self._images.give_up()

    async def _act_on(self, actions: Sequence[Action]) -> None:
        """One container that can't be ended doesn't save the others; but nothing starts beside what should be gone."""
        refused: RuntimeRefused | None = None
        needs_permit = any(isinstance(action, _NEEDS_PERMIT) for action in actions)
        for action in actions:
            if refused is not None and not isinstance(action, _ALSO_AFTER_A_REFUSAL):
                continue
            if needs_permit and not isinstance(action, _ENDS):
                await self._permit.acquire()
            try:
                if not await self._act(action):
                    return
            except RuntimeRefused as error:
                refused = refused or error
        if refused is not None:
            raise refused

    async def _act(self, action: Action) -> bool:
        """False when the rest of the plan must not be done."""
        runtime = self._with.runtime
        match action:
            case CreateSandbox():
                return await self._create_sandbox(action)
            case PullImage():
                await self._images.pull(action)
                return True
            case StartContainer():
                if self._may_start(action.name):
                    await self._start(action)
                return True
            case UpdateContainer():
                await self._update(action)
                return True
            case Signal():
                await runtime.signal_container(action.container_id, action.signal)
            case Kill():
                await runtime.signal_container(action.container_id, "SIGKILL")
            case RemoveContainer():
                await runtime.remove_container(action.container_id)
            case StopSandbox():
                await runtime.stop_pod_sandbox(action.sandbox_id)
            case RemoveSandbox():
                await runtime.remove_pod_sandbox(action.sandbox_id)
        self._done(action)
        return True

    async def _update(self, action: UpdateContainer) -> None:
        assert self._pod is not None
        node = self._with.node
        update = ContainerUpdate(
            cpu_shares=action.cpu_shares,
            cpu_quota=action.cpu_quota,
            memory=action.memory,
            cgroup_parent=cgroup_parent(self._pod, node),
            pod_limits=pod_limits(self._pod, node.pod_pids_limit),
        )
        try:
            await self._with.runtime.update_container(action.container_id, update)
        except RuntimeRefused as error:
            log.info("resize refused pod=%s container=%s error=%s", self.outcome.pod_name, action.name, error.message)
            now = self._with.clock.now()
            self.outcome.memory, events = record_resize_failed(self.outcome.memory, action.name, error.message, now)
            self.outcome.events.extend(events)

    def _may_start(self, container: str) -> bool:
        """Its image is here, and the pod's time didn't run out meanwhile: if it did, the next look ends it."""
        if container in self._images.skipped or self._images.is_given_up:
            return False
        assert self._pod is not None
        now = self._with.clock.now()
        due = deadline_of(self._pod, self.outcome.memory, now)
        return due is None or now < due

    def _done(self, action: Action) -> None:
        self.outcome.memory = record_done(self.outcome.memory, action, now=self._with.clock.now())

    async def _create_sandbox(self, action: CreateSandbox) -> bool:
        assert self._pod is not None
        if faults := await self._set_up_volumes(self._pod):
            text = "; ".join(f"volume {fault.volume}: {fault.message}" for fault in faults)
            self.outcome.memory = record_sandbox_failed(
                self.outcome.memory, FAILED_MOUNT, text, now=self._with.clock.now(), config=self._with.config
            )
            return False
        if action.attempt == 0 and SANDBOX_CONTAINER not in self.outcome.memory.waiting:  # else it was told before
            self.outcome.events.extend(dns_events(self._pod, self._with.node))
        try:
            if fault := hostname_fault(self._pod, self._with.node):
                raise RuntimeRefused(FAILED_CREATE_POD_SANDBOX, fault)
            config = sandbox_config(self._pod, self._with.node, action.attempt)
            self._sandbox_id = await self._with.runtime.run_pod_sandbox(config)
        except RuntimeRefused as error:
            self._with.measures.started_pod_errors.add()
            log.info("sandbox refused pod=%s error=%s", self.outcome.pod_name, error)
            self.outcome.events.append(events_text.sandbox_failed(error.message))
            self.outcome.memory = record_sandbox_failed(
                self.outcome.memory, error.reason, error.message, now=self._with.clock.now(), config=self._with.config
            )
            return False
        self._with.measures.started_pods.add()
        self._done(action)
        return True

    async def _set_up_volumes(self, pod: Pod) -> tuple[VolumeFault, ...]:
        """Once per plan, before anything starts."""
        if self._volumes_are_up:
            return ()
        faults = await self._with.volumes.set_up(pod)
        for fault in faults:
            log.info("volume failed pod=%s volume=%s error=%s", self.outcome.pod_name, fault.volume, fault.message)
            self.outcome.events.append(events_text.mount_failed(fault.volume, fault.message))
        self._volumes_are_up = not faults
        return faults

    async def _inputs(self, pod: Pod, container: Container) -> ContainerInputs:
        """Variables and mounts. Raises RuntimeRefused."""
        if faults := await self._set_up_volumes(pod):
            await self._with.volumes.still_usable(pod, faults)

        async def addresses() -> tuple[str, ...]:
            seen = await self._with.runtime.pod(pod.metadata.uid)
            return next((s.ips for s in seen.sandboxes if s.ready), ()) if seen is not None else ()

        inputs = await self._with.volumes.for_container(pod, container, addresses)
        return replace(inputs, devices=devices_of(pod, container, self.outcome.memory.devices))

    async def _start(self, action: StartContainer) -> None:
        assert self._pod is not None
        container = container_named(self._pod, action.name)
        assert container is not None
        image = self._images.images.get(action.name)
        image_user = image.user if image is not None else ""
        is_private = False
        try:
            inputs = await self._inputs(self._pod, container)
            if fault := non_root_fault(self._pod, container, image_user):
                raise RuntimeRefused(CREATE_CONTAINER_CONFIG_ERROR, fault)
            config = container_config(
                self._pod,
                container,
                self._with.node,
                action.attempt,
                sandbox_id=self._sandbox_id,
                source=self.outcome.memory.source,
                image_user=image_user,
                inputs=inputs,
            )
            is_private = LABEL_PRIVATE_COMMAND in config.labels
            container_id = await self._with.runtime.create_container(config, self._sandbox_id)
            self.outcome.events.append(events_text.created(action.name))
            await self._with.runtime.start_container(container_id)
        except RuntimeRefused as error:
            self._with.measures.started_container_errors.add(error.reason, container_type(self._pod, action.name))
            message = WITHHELD if is_private else error.message
            log.info("start refused pod=%s container=%s error=%s", self.outcome.pod_name, action.name, message)
            self.outcome.events.append(events_text.start_failed(action.name, message))
            self.outcome.memory = record_start_failed(
                self.outcome.memory,
                action,
                error.reason,
                message,
                now=self._with.clock.now(),
                config=self._with.config,
            )
            return
        self._with.measures.started_containers.add(container_type(self._pod, action.name))
        self.outcome.events.append(events_text.started(action.name))
        self._done(action)
