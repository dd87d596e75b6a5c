"""The fields that every message in a bucket carries."""

from __future__ import annotations

import msgspec

VERSION = 1
"""Of all messages. It changes only for a break, and then a new bucket is written beside the old one for a release."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the bucket messages. Within a version fields are only added, with a default; readers ignore others."""

    v: int
    node: str
    ts: float
    """When it was written, seconds since the epoch."""
    traceparent: str = ""
    """W3C trace context; "" = not traced."""
