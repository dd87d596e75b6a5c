"""Images for pods: the credentials of their imagePullSecrets, and whether an image that is there is for them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from services.podworker.core import events_text
from services.podworker.core.events_text import PodEvent
from services.podworker.core.image_access import ANYBODY, NEVER_VERIFY_PRELOADED, PulledImage, may_use
from services.podworker.core.image_credentials import (
    Credential,
    UnusableSecret,
    credentials_of,
    failures,
    matching,
    pull_secret_names,
)
from services.podworker.ports import (
    ConfigObjects,
    ConfigUnavailable,
    ImageInfo,
    ImagePullFailed,
    ImageRecords,
    ImageService,
    PullProgress,
    StoreUnavailable,
)
from shared.kube.pod import Pod
from shared.kube.references import ConfigRef
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.podworker.images")


class ImageAccess:
    """Of all pods of a worker. Nothing of a Secret is kept."""

    def __init__(
        self,
        images: ImageService,
        configs: ConfigObjects,
        records: ImageRecords,
        clock: Clock,
        policy: str = NEVER_VERIFY_PRELOADED,
    ) -> None:
        """`policy`: imagePullCredentialsVerificationPolicy."""
        self._images = images
        self._configs = configs
        self._records = records
        self._clock = clock
        self._policy = policy

    async def credentials(self, pod: Pod, reference: str) -> tuple[list[Credential], list[PodEvent]]:
        """Those to show for the image, and a warning of Secrets that can't be used: the pull is tried all the same."""
        found: list[Credential] = []
        bad: list[str] = []
        for name in pull_secret_names(secret.name for secret in pod.spec.image_pull_secrets):
            try:
                secret = await self._configs.get(pod.metadata.uid, ConfigRef("Secret", name))
                if secret is None:
                    raise UnusableSecret("not found")
                found += credentials_of(secret)
            except (ConfigUnavailable, UnusableSecret) as error:
                log.info("pull secret left out pod=%s secret=%s error=%s", _name(pod), name, error)
                bad.append(name)
        return matching(found, reference), [events_text.pull_secrets_missing(bad)] if bad else []

    def may_use(self, image: ImageInfo, reference: str, credentials: Sequence[Credential]) -> bool:
        """Whether the image that is there may be given to a pod with these credentials. What can't be read isn't
        given."""
        try:
            return may_use(reference, self._records.of(image.id), credentials, self._policy)
        except StoreUnavailable as error:
            log.warning("access not known image=%s error=%s", reference, error)
            return False

    async def pull(
        self, reference: str, present: ImageInfo | None, credentials: Sequence[Credential], progress: PullProgress
    ) -> ImageInfo:
        """With each credential in turn, without any where there is none. Raises ImagePullFailed, RuntimeUnavailable."""
        self._begin(reference)
        refusals: list[ImagePullFailed] = []
        tries: list[Credential | None] = [*credentials] or [None]
        for credential in tries:
            try:
                image = await self._images.pull_image(reference, progress, credential)
            except ImagePullFailed as error:
                refusals.append(error)
                continue
            self._pulled(reference, present, image, credential)
            return image
        self._give_up(reference)
        raise ImagePullFailed(refusals[-1].reason, failures(error.message for error in refusals))

    def _begin(self, reference: str) -> None:
        try:
            self._records.begin(reference, self._clock.now())
        except StoreUnavailable as error:
            raise ImagePullFailed("ErrImagePull", f"the pull can't be written down: {error}") from error

    def _pulled(
        self, reference: str, present: ImageInfo | None, image: ImageInfo, credential: Credential | None
    ) -> None:
        now = self._clock.now()
        record = PulledImage(
            image_id=image.id,
            reference=reference,
            is_ours=present is None or present.id != image.id,
            pulled_at=now,
            used_at=now,
            access=(ANYBODY if credential is None else credential.fingerprint,),
        )
        try:
            self._records.pulled(record)
        except StoreUnavailable as error:
            log.warning("pull not written down image=%s error=%s", reference, error)

    def _give_up(self, reference: str) -> None:
        try:
            self._records.give_up(reference)
        except StoreUnavailable as error:
            log.warning("failed pull not written down image=%s error=%s", reference, error)


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
