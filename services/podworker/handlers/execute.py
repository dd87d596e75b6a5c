"""Does what a plan says, in its order, and puts what came of it into the pod's memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from services.podworker.core import events_text, images
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
from services.podworker.core.events_text import PodEvent
from services.podworker.core.host_names import hostname_fault
from services.podworker.core.image_access import no_access_message
from services.podworker.core.image_credentials import Credential
from services.podworker.core.model import PodMemory
from services.podworker.core.node_facts import NodeFacts
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
from services.podworker.core.pod_limits import pod_limits
from services.podworker.core.resize import record_resize_failed
from services.podworker.core.resources import cgroup_parent
from services.podworker.core.results import (
    CREATE_CONTAINER_CONFIG_ERROR,
    ERR_IMAGE_NEVER_PULL,
    FAILED_CREATE_POD_SANDBOX,
    FAILED_MOUNT,
    record_done,
    record_pull_failed,
    record_pull_progress,
    record_sandbox_failed,
    record_start_failed,
)
from services.podworker.core.security_context import non_root_fault
from services.podworker.core.volumes import VolumeFault
from services.podworker.handlers.image_access import ImageAccess
from services.podworker.handlers.permits import Permits
from services.podworker.handlers.volumes import VolumeKeeper
from services.podworker.ports import (
    ContainerRuntime,
    ImageInfo,
    ImagePullFailed,
    ImageService,
    RuntimeRefused,
)
from shared.kube.names import LABEL_PRIVATE_COMMAND, SANDBOX_CONTAINER
from shared.kube.pod import Container, Pod, container_named
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.podworker.execute")

_NEEDS_PERMIT = (CreateSandbox, StartContainer, RemoveContainer, RemoveSandbox, StopSandbox)
_ENDS = (Signal, Kill)
"""They come first, and wait for no permit."""
_ALSO_AFTER_A_REFUSAL = (Signal, Kill, RemoveContainer)


class Executor:
    """Shared by all pods of a worker; one `Execution` per plan."""

    def __init__(
        self,
        runtime: ContainerRuntime,
        image_service: ImageService,
        permits: Permits,
        pulls: Permits,
        node: NodeFacts,
        config: SyncConfig,
        clock: Clock,
        *,
        volumes: VolumeKeeper,
        access: ImageAccess | None = None,
    ) -> None:
        """`access` None: images are anybody's, and are pulled without a pod's credentials."""
        self.runtime = runtime
        self.images = image_service
        self.permits = permits
        self.pulls = pulls
        self.node = node
        self.config = config
        self.clock = clock
        self.volumes = volumes
        self.access = access


Progress = Callable[[PodMemory], None]
"""The memory with how far a pull is: for the bus only, not for the disk."""


class Execution:
    """One plan of one pod. `memory` and `events` hold what came of it, also after an error was raised."""

    def __init__(
        self, executor: Executor, pod: Pod | None, sandbox_id: str, memory: PodMemory, progress: Progress
    ) -> None:
        self._with = executor
        self._pod = pod
        self._sandbox_id = sandbox_id
        self._progress = progress
        self._images: dict[str, ImageInfo] = {}
        self._skipped: set[str] = set()
        self._failed_references: set[str] = set()
        self._holds_permit = False
        self._volumes_are_up = False
        self.memory = memory
        self.events: list[PodEvent] = []

    async def run(self, plan: Plan) -> None:
        """Look again later when it raises RuntimeUnavailable: the engine went away; or RuntimeRefused: it would not end
        or remove something."""
        try:
            await self._act_on(sorted(plan.actions, key=lambda action: not isinstance(action, _ENDS)))
        finally:
            self._release()

    async def _act_on(self, actions: Sequence[Action]) -> None:
        """One container that can't be ended doesn't save the others; but nothing starts beside what should be gone."""
        refused: RuntimeRefused | None = None
        needs_permit = any(isinstance(action, _NEEDS_PERMIT) for action in actions)
        for action in actions:
            if refused is not None and not isinstance(action, _ALSO_AFTER_A_REFUSAL):
                continue
            if needs_permit and not self._holds_permit and not isinstance(action, _ENDS):
                await self._acquire()
            try:
                if not await self._act(action):
                    return
            except RuntimeRefused as error:
                refused = refused or error
        if refused is not None:
            raise refused

    async def _acquire(self) -> None:
        await self._with.permits.acquire()
        self._holds_permit = True

    def _release(self) -> None:
        if self._holds_permit:
            self._holds_permit = False
            self._with.permits.release()

    async def _act(self, action: Action) -> bool:
        """False when the rest of the plan must not be done."""
        runtime = self._with.runtime
        match action:
            case CreateSandbox():
                return await self._create_sandbox(action)
            case PullImage():
                if action.reference in self._failed_references:
                    # The next plan tells this container's back-off; the registry isn't asked twice.
                    self._skipped.add(action.container)
                else:
                    await self._pull(action)
                return True
            case StartContainer():
                if action.name not in self._skipped and not self._is_late():
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
            log.info("resize refused pod=%s container=%s error=%s", self._name, action.name, error.message)
            now = self._with.clock.now()
            self.memory, events = record_resize_failed(self.memory, action.name, error.message, now)
            self.events.extend(events)

    def _is_late(self) -> bool:
        """The pod's time ran out during a pull: the next look ends it."""
        assert self._pod is not None
        now = self._with.clock.now()
        due = deadline_of(self._pod, self.memory, now)
        return due is not None and now >= due

    @property
    def _name(self) -> str:
        return f"{self.memory.namespace}/{self.memory.name}"

    def _done(self, action: Action) -> None:
        self.memory = record_done(self.memory, action, now=self._with.clock.now())

    async def _create_sandbox(self, action: CreateSandbox) -> bool:
        assert self._pod is not None
        if faults := await self._set_up_volumes(self._pod):
            text = "; ".join(f"volume {fault.volume}: {fault.message}" for fault in faults)
            self.memory = record_sandbox_failed(
                self.memory, FAILED_MOUNT, text, now=self._with.clock.now(), config=self._with.config
            )
            return False
        if action.attempt == 0 and SANDBOX_CONTAINER not in self.memory.waiting:  # else it was told before
            self.events.extend(dns_events(self._pod, self._with.node))
        try:
            if fault := hostname_fault(self._pod, self._with.node):
                raise RuntimeRefused(FAILED_CREATE_POD_SANDBOX, fault)
            config = sandbox_config(self._pod, self._with.node, action.attempt)
            self._sandbox_id = await self._with.runtime.run_pod_sandbox(config)
        except RuntimeRefused as error:
            log.info("sandbox refused pod=%s error=%s", self._name, error)
            self.events.append(events_text.sandbox_failed(error.message))
            self.memory = record_sandbox_failed(
                self.memory, error.reason, error.message, now=self._with.clock.now(), config=self._with.config
            )
            return False
        self._done(action)
        return True

    async def _set_up_volumes(self, pod: Pod) -> tuple[VolumeFault, ...]:
        """Once per plan, before anything starts."""
        if self._volumes_are_up:
            return ()
        faults = await self._with.volumes.set_up(pod)
        for fault in faults:
            log.info("volume failed pod=%s volume=%s error=%s", self._name, fault.volume, fault.message)
            self.events.append(events_text.mount_failed(fault.volume, fault.message))
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
        return replace(inputs, devices=devices_of(pod, container, self.memory.devices))

    async def _pull(self, action: PullImage) -> None:
        try:
            present = await self._with.images.image(action.reference)
            credentials, usable = await self._credentials(action, present)
        except ImagePullFailed as error:
            log.info("image not looked at pod=%s image=%s error=%s", self._name, action.reference, error.message)
            self.events.append(events_text.inspect_failed(action.container, error.message))
            self.events.append(events_text.start_failed(action.container, error.reason))
            self._pull_failed(action, error.reason, error.message)
            return
        if not usable and action.policy == "Never":
            say = images.never_pull_message if present is None else no_access_message
            message = say(action.reference)
            self.events.append(events_text.never_pulled(action.container, message))
            self.events.append(events_text.start_failed(action.container, ERR_IMAGE_NEVER_PULL))
            self._pull_failed(action, ERR_IMAGE_NEVER_PULL, message)
            return
        if present is not None and usable and action.policy != "Always":
            self.events.append(events_text.already_present(action.container, action.reference))
        else:
            pulled = await self._pull_from_registry(action, present, credentials)
            if pulled is None:
                return
            present = pulled
        self._images[action.container] = present
        self._done(action)

    async def _credentials(self, action: PullImage, present: ImageInfo | None) -> tuple[list[Credential], bool]:
        """What to show the registry, and whether the pod may have the image as it is here."""
        access = self._with.access
        if access is None or self._pod is None:
            return [], present is not None
        credentials, events = await access.credentials(self._pod, action.reference)
        usable = present is not None and access.may_use(present, action.reference, credentials)
        if not usable or action.policy == "Always":
            self.events.extend(events)
        return credentials, usable

    async def _pull_from_registry(
        self, action: PullImage, present: ImageInfo | None, credentials: list[Credential]
    ) -> ImageInfo | None:
        """A pull holds a place among the pulls, and no permit for starts meanwhile."""
        had_permit = self._holds_permit
        self._release()
        clock = self._with.clock
        self.events.append(events_text.pulling(action.container, action.reference))
        asked_at = clock.now()

        def progress(current: int, total: int) -> None:
            memory = record_pull_progress(self.memory, action, current, total, now=clock.now())
            self._progress(memory)

        try:
            async with self._with.pulls.held():
                began_at = clock.now()
                if self._with.access is None:
                    image = await self._with.images.pull_image(action.reference, progress)
                else:
                    image = await self._with.access.pull(action.reference, present, credentials, progress)
            now = clock.now()
        except ImagePullFailed as error:
            log.info("pull failed pod=%s image=%s error=%s", self._name, action.reference, error.message)
            self.events.append(events_text.pull_failed(action.container, action.reference, error.message))
            self.events.append(events_text.start_failed(action.container, error.reason))
            self._pull_failed(action, error.reason, error.message)
            return None
        finally:
            if had_permit:
                await self._acquire()
        self.events.append(
            events_text.pulled(action.container, action.reference, now - began_at, now - asked_at, image.size)
        )
        return image

    def _pull_failed(self, action: PullImage, reason: str, message: str) -> None:
        self._skipped.add(action.container)
        self._failed_references.add(action.reference)
        self.memory = record_pull_failed(
            self.memory, action, reason, message, now=self._with.clock.now(), config=self._with.config
        )

    async def _start(self, action: StartContainer) -> None:
        assert self._pod is not None
        container = container_named(self._pod, action.name)
        assert container is not None
        image = self._images.get(action.name)
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
                source=self.memory.source,
                image_user=image_user,
                inputs=inputs,
            )
            is_private = LABEL_PRIVATE_COMMAND in config.labels
            container_id = await self._with.runtime.create_container(config, self._sandbox_id)
            self.events.append(events_text.created(action.name))
            await self._with.runtime.start_container(container_id)
        except RuntimeRefused as error:
            message = WITHHELD if is_private else error.message
            log.info("start refused pod=%s container=%s error=%s", self._name, action.name, message)
            self.events.append(events_text.start_failed(action.name, message))
            self.memory = record_start_failed(
                self.memory,
                action,
                error.reason,
                message,
                now=self._with.clock.now(),
                config=self._with.config,
            )
            return
        self.events.append(events_text.started(action.name))
        self._done(action)
