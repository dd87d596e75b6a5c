"""Whether a pod may have an image that is on the engine already (kubelet 1.35: KubeletEnsureSecretPulledImages).

What was pulled with a Secret is given only to pods that show the registry the same credentials, or that it serves too.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from services.podworker.core.image_credentials import Credential
from services.podworker.core.images import InvalidReference, parse_reference

ANYBODY = ""
"""Stands among the fingerprints for a pull without credentials of a pod."""
NEVER_VERIFY = "NeverVerify"
NEVER_VERIFY_PRELOADED = "NeverVerifyPreloadedImages"
ALWAYS_VERIFY = "AlwaysVerify"
_BY_ID = "sha256:"
"""The engine takes an id for a name, too: any pull of the image counts for it."""


class PulledImage(msgspec.Struct, frozen=True, kw_only=True):
    """One pull of ours: an image under one of its names."""

    image_id: str = ""
    """"" = under way, or cut: the image may be there, nobody has said for whom."""
    reference: str
    is_ours: bool = False
    """We have brought it; else it was there, and the registry has only confirmed it."""
    pulled_at: float
    used_at: float
    """When a container of it was last seen; the pull counts as one."""
    access: tuple[str, ...] = ()
    """Fingerprints of credentials that were good for it."""


def may_use(
    reference: str,
    records: Sequence[PulledImage],
    credentials: Sequence[Credential],
    policy: str = NEVER_VERIFY_PRELOADED,
) -> bool:
    """`records`: of the image, and of pulls that never ended. `credentials`: the pod's for this image.

    A name that we never pulled was given by somebody else, for all pods of the node: unlike the kubelet's, it stays
    usable when the same image is pulled under another name with a Secret.
    """
    if policy == NEVER_VERIFY:
        return True
    known = [one for one in records if one.image_id]
    if not reference.startswith(_BY_ID):
        known = [one for one in known if _repository(one.reference) == _repository(reference)]
    is_cut = any(not one.image_id and one.reference == reference for one in records)
    if not known and not is_cut:
        return policy != ALWAYS_VERIFY
    good = {fingerprint for one in known for fingerprint in one.access}
    return bool(good & {ANYBODY, *(credential.fingerprint for credential in credentials)})


def _repository(reference: str) -> str:
    """kubelet: access is to the name, whatever the tag."""
    try:
        return parse_reference(reference).name
    except InvalidReference:
        return reference


def no_access_message(reference: str) -> str:
    """Of policy Never, where the registry isn't asked."""
    return (
        f'Container image "{reference}" is present with pull policy of Never, but was pulled with credentials that the '
        "pod doesn't have"
    )
