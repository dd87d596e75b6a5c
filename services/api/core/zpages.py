"""flagz and statusz: the pages that Kubernetes' components have about themselves (kubelet 1.36)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

_WARNING = """
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.
"""  # noqa: E501 - one line of the page
PATHS = ("/configz", "/debug/flags/v", "/flagz", "/healthz", "/logs", "/pods", "/runningpods", "/stats", "/statusz")


def choose_form(accept: str, kind: str) -> Literal["text", "json"] | None:
    """Text without a wish, */* or text/plain; JSON only as `application/json;v=v1beta1;g=config.k8s.io;as=<kind>`;
    None = 406."""
    if not accept:
        return "text"
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        given = dict(piece.split("=", 1) for piece in parameters if "=" in piece)
        if name in ("*/*", "text/plain"):
            return "text"
        if name == "application/json" and (given.get("g"), given.get("as")) == ("config.k8s.io", kind):
            return "json"
    return None


def flagz_text(flags: Mapping[str, str]) -> str:
    lines = "".join(f"{name}={value}\n" for name, value in sorted(flags.items()))
    return f"\nkubelet flagz{_WARNING}\n{lines}"


def statusz_text(since: str, seconds: int, version: str) -> str:
    """`since` in RFC 3339; `seconds` since then."""
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    return (
        f"\nkubelet statusz{_WARNING}\nStarted: {since}\nUp: {hours} hr {minutes:02d} min {left:02d} sec\n"
        f"Binary version: {version}\nPaths: {' '.join(PATHS)}\n"
    )


def statusz_document(since: str, seconds: int, version: str) -> dict[str, object]:
    return {
        "kind": "Statusz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "kubelet"},
        "startTime": since,
        "uptimeSeconds": seconds,
        "binaryVersion": version,
        "paths": list(PATHS),
    }
