"""Image references, the pull decision and the words about them (lifecycle 7.7, 4.3)."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

DEFAULT_TAG = "latest"
MAX_NAME = 255

_HOST = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*"
    r"|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
)
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")


REGISTRY_UNAVAILABLE = "RegistryUnavailable"
_UNAVAILABLE_CODES = (502, 503, 504)
_UNAVAILABLE = re.compile(r"(?:unexpected HTTP status:|parsing HTTP) 50[234]\b")
"""How the engine words a registry's bad day: "received unexpected HTTP status: 503 Service Unavailable", "error
parsing HTTP 502 response body"."""


class Reference(msgspec.Struct, frozen=True):
    """A parsed reference; `name` is what was written before the tag or digest, not normalised."""

    name: str
    tag: str = ""
    digest: str = ""


class InvalidReference(ValueError):
    """The text isn't an image reference; `str(error)` is the wording of Docker's reference library."""


def parse_reference(text: str) -> Reference:
    """`[host[:port]/]path[:tag][@digest]` -> its parts. Raises InvalidReference."""
    if _IDENTIFIER.fullmatch(text):
        raise InvalidReference(f"invalid repository name ({text}), cannot specify 64-byte hexadecimal strings")
    rest, at, digest = text.partition("@")
    slash = rest.rfind("/")
    last, colon, tag = rest[slash + 1 :].partition(":")
    name = rest[: slash + 1] + last
    host, path = _split_host(name)
    if path != path.lower():
        raise InvalidReference("invalid reference format: repository name must be lowercase")
    well_formed = (
        (not host or _HOST.fullmatch(host))
        and all(_COMPONENT.fullmatch(part) for part in path.split("/"))
        and (not colon or _TAG.fullmatch(tag))
        and (not at or _DIGEST.fullmatch(digest))
    )
    if not well_formed:
        raise InvalidReference("invalid reference format")
    if len(name) > MAX_NAME:
        raise InvalidReference(f"repository name must not be more than {MAX_NAME} characters")
    return Reference(name, tag, digest)


def _split_host(name: str) -> tuple[str, str]:
    """The registry's host is a first part with a dot, a port or an upper-case letter, or "localhost"."""
    first, slash, rest = name.partition("/")
    is_host = "." in first or ":" in first or first == "localhost" or first != first.lower()
    return (first, rest) if slash and is_host else ("", name)


def with_default_tag(text: str) -> str:
    """The reference, with `:latest` when it has neither tag nor digest. One that can't be read stays."""
    try:
        reference = parse_reference(text)
    except InvalidReference:
        return text
    return text if reference.tag or reference.digest else f"{text}:{DEFAULT_TAG}"


def invalid_image_message(text: str) -> str | None:
    """The message of waiting reason InvalidImageName, or None for a reference that can be read."""
    try:
        parse_reference(text)
    except InvalidReference as error:
        return f'Failed to apply default image tag "{text}": couldn\'t parse image name "{text}": {error}'
    return None


PullDecision = Literal["use", "pull", "refuse"]


def pull_decision(policy: str, *, present: bool) -> PullDecision:
    """Take the local image, ask the registry, or fail (policy Never and absent)."""
    if policy == "Always":
        return "pull"
    if present:
        return "use"
    return "refuse" if policy == "Never" else "pull"


def never_pull_message(reference: str) -> str:
    """The message of waiting reason ErrImageNeverPull."""
    return f'Container image "{reference}" is not present with pull policy of Never'


def back_off_message(reference: str, last_error: str) -> str:
    """The message of waiting reason ImagePullBackOff. `last_error`: "ErrImagePull: <text>", or ""."""
    message = f'Back-off pulling image "{reference}"'
    return f"{message}: {last_error}" if last_error else message


def pull_failure(reference: str, text: str, code: int = 0) -> tuple[str, str]:
    """(reason, message) of a pull that failed. `code`: of the registry's answer, where the engine tells it."""
    if code in _UNAVAILABLE_CODES or _UNAVAILABLE.search(text):
        return REGISTRY_UNAVAILABLE, f"image pull failed for {reference} because the registry is unavailable: {text}"
    return "ErrImagePull", text


def inspect_failure(reference: str, text: str) -> tuple[str, str]:
    """(reason, message) when the engine can't tell whether it has the image."""
    return "ImageInspectError", f'Failed to inspect image "{reference}": {text}'


def progress_message(reference: str, current: int, total: int) -> str:
    """How far a pull is, in bytes; `total` 0 = not known yet."""
    if total <= 0:
        return f'Pulling image "{reference}"'
    mib = 1024 * 1024
    done = min(current, total)
    return f'Pulling image "{reference}": {done * 100 // total} % ({_mib(done / mib)}/{_mib(total / mib)} MiB)'


def _mib(amount: float) -> str:
    return f"{amount:.0f}" if amount >= 1 or amount == 0 else f"{amount:.1f}"
