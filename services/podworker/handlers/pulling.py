"""Gets the images of one plan: what is here may be used or not, and what isn't is pulled."""

from __future__ import annotations

import asyncio
import logging

from services.podworker.core import events_text, images
from services.podworker.core.image_access import no_access_message
from services.podworker.core.image_credentials import Credential
from services.podworker.core.plan import PullImage
from services.podworker.core.results import (
    ERR_IMAGE_NEVER_PULL,
    record_done,
    record_pull_failed,
    record_pull_progress,
)
from services.podworker.handlers.executor import Executor, HeldPermit, Outcome, Progress
from services.podworker.ports import ImageInfo, ImagePullFailed
from shared.kube.pod import Pod

log = logging.getLogger("podbus.podworker.execute")


class PlanImages:
    """`images`: container -> its image; `skipped`: containers that can't start for want of theirs."""

    def __init__(
        self, executor: Executor, pod: Pod | None, outcome: Outcome, permit: HeldPermit, progress: Progress
    ) -> None:
        self._with = executor
        self._pod = pod
        self._outcome = outcome
        self._permit = permit
        self._progress = progress
        self._failed_references: set[str] = set()
        self._given_up = False
        self._waiting: asyncio.Timeout | None = None
        """Around the pull that is under way."""
        self.images: dict[str, ImageInfo] = {}
        self.skipped: set[str] = set()

    @property
    def is_given_up(self) -> bool:
        return self._given_up

    def give_up(self) -> None:
        """The pod is to end, or to go on elsewhere: a pull under way is waited for no longer, and none begins."""
        self._given_up = True
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def pull(self, action: PullImage) -> None:
        """Of two containers with one image only the first asks the registry for what it didn't give: the next plan
        tells the other one's back-off."""
        if self._given_up or action.reference in self._failed_references:
            self.skipped.add(action.container)
        else:
            await self._get(action)

    async def _get(self, action: PullImage) -> None:
        try:
            present = await self._with.images.image(action.reference)
            credentials, usable = await self._credentials(action, present)
        except ImagePullFailed as error:
            log.info(
                "image not looked at pod=%s image=%s error=%s", self._outcome.pod_name, action.reference, error.message
            )
            self._outcome.events.append(events_text.inspect_failed(action.container, error.message))
            self._outcome.events.append(events_text.start_failed(action.container, error.reason))
            self._pull_failed(action, error.reason, error.message)
            return
        if not usable and action.policy == "Never":
            say = images.never_pull_message if present is None else no_access_message
            message = say(action.reference)
            self._outcome.events.append(events_text.never_pulled(action.container, message))
            self._outcome.events.append(events_text.start_failed(action.container, ERR_IMAGE_NEVER_PULL))
            self._pull_failed(action, ERR_IMAGE_NEVER_PULL, message)
            return
        if present is not None and usable and action.policy != "Always":
            self._outcome.events.append(events_text.already_present(action.container, action.reference))
        else:
            pulled = await self._pull_from_registry(action, present, credentials)
            if pulled is None:
                return
            present = pulled
        self.images[action.container] = present
        self._outcome.memory = record_done(self._outcome.memory, action, now=self._with.clock.now())

    async def _credentials(self, action: PullImage, present: ImageInfo | None) -> tuple[list[Credential], bool]:
        """What to show the registry, and whether the pod may have the image as it is here."""
        access = self._with.access
        if access is None or self._pod is None:
            return [], present is not None
        credentials, events = await access.credentials(self._pod, action.reference)
        usable = present is not None and access.may_use(present, action.reference, credentials)
        if not usable or action.policy == "Always":
            self._outcome.events.extend(events)
        return credentials, usable

    async def _pull_from_registry(
        self, action: PullImage, present: ImageInfo | None, credentials: list[Credential]
    ) -> ImageInfo | None:
        """A pull holds a place among the pulls, and no permit for starts meanwhile: what comes next asks for one."""
        self._permit.release()
        clock = self._with.clock
        self._outcome.events.append(events_text.pulling(action.container, action.reference))
        asked_at = clock.now()

        def progress(current: int, total: int) -> None:
            memory = record_pull_progress(self._outcome.memory, action, current, total, now=clock.now())
            self._progress(memory)

        try:
            async with asyncio.timeout(None) as self._waiting, self._with.pulls.held():
                began_at = clock.now()
                if self._with.access is None:
                    image = await self._with.images.pull_image(action.reference, progress)
                else:
                    image = await self._with.access.pull(action.reference, present, credentials, progress)
            now = clock.now()
            self._with.measures.pull_seconds.observe(max(0.0, now - began_at))
        except ImagePullFailed as error:
            log.info("pull failed pod=%s image=%s error=%s", self._outcome.pod_name, action.reference, error.message)
            self._outcome.events.append(events_text.pull_failed(action.container, action.reference, error.message))
            self._outcome.events.append(events_text.start_failed(action.container, error.reason))
            self._pull_failed(action, error.reason, error.message)
            return None
        except TimeoutError:
            if not self._given_up:
                raise
            log.info(
                "pull given up, it ends or goes elsewhere pod=%s image=%s", self._outcome.pod_name, action.reference
            )
            self.skipped.add(action.container)
            return None
        finally:
            self._waiting = None
        self._outcome.events.append(
            events_text.pulled(action.container, action.reference, now - began_at, now - asked_at, image.size)
        )
        return image

    def _pull_failed(self, action: PullImage, reason: str, message: str) -> None:
        self.skipped.add(action.container)
        self._failed_references.add(action.reference)
        self._outcome.memory = record_pull_failed(
            self._outcome.memory, action, reason, message, now=self._with.clock.now(), config=self._with.config
        )
