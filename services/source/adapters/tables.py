"""The tables of source.db: the last good set of each source, so that a start without the source still knows
its pods.

Values of Secrets are never written here.
"""

from __future__ import annotations

from sqlalchemy import Column, Float, Integer, LargeBinary, MetaData, Table, Text

metadata = MetaData()

objects = Table(
    "objects",
    metadata,
    # file, http or api.
    Column("source", Text, primary_key=True),
    # The file, or the URL.
    Column("path", Text, primary_key=True),
    # Which document of its file it is: namespace/name for a pod, so that moving it inside the file changes
    # nothing.
    Column("document", Text, primary_key=True),
    Column("uid", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    # The defaulted, validated v1.Pod as JSON.
    Column("body", LargeBinary, nullable=False),
    Column("hash", Text, nullable=False),
    Column("gen", Integer, nullable=False),
    # When this UID was first seen, seconds since the epoch (kubernetes.io/config.seen).
    Column("seen", Float, nullable=False),
)
"""One row per object of the last good set."""

sources = Table(
    "sources",
    metadata,
    Column("source", Text, primary_key=True),
    # The manifest directory, or the URL: another one than now means that the set isn't this source's any
    # more.
    Column("origin", Text, nullable=False),
    # The last generation given out; it only grows, also across restarts and removed pods.
    Column("gen", Integer, nullable=False),
    # Last complete listing, seconds since the epoch; 0 = there was none.
    Column("listed_at", Float, nullable=False),
    # The source's own state as JSON.
    Column("state", Text, nullable=False, server_default="{}"),
)
"""One row per source."""
