"""The tables of status.db."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, MetaData, Table, Text

metadata = MetaData()

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True),
    # Of everything that makes two events the same one (object, type, reason, message, component):
    # aggregation.
    Column("key", Text, nullable=False, unique=True),
    Column("type", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("message", Text, nullable=False),
    # shared.contracts.events.InvolvedObject as JSON; the three after it are taken out of it for queries.
    Column("involved", Text, nullable=False),
    Column("involved_namespace", Text, nullable=False),
    Column("involved_name", Text, nullable=False),
    Column("involved_uid", Text, nullable=False),
    Column("component", Text, nullable=False),
    Column("count", Integer, nullable=False),
    Column("first_seen", Float, nullable=False),
    Column("last_seen", Float, nullable=False),
    Index("events_last_seen", "last_seen"),
    Index("events_involved", "involved_namespace", "involved_name"),
)
"""The event history: one row per different event, counted."""

seen_events = Table(
    "seen_events",
    metadata,
    Column("id", Text, primary_key=True),
    # When it was recorded, not when it happened: one that waited long at its producer may still come twice.
    Column("time", Float, nullable=False),
    Index("seen_events_time", "time"),
)
"""Ids of the events that were counted already, so that one handed over twice counts once; old ones are
dropped by time."""

node = Table(
    "node",
    metadata,
    # Always 1: there is one row.
    Column("id", Integer, primary_key=True),
    # services.status.core.model.NodeMemory as JSON.
    Column("memory", Text, nullable=False),
)
"""When the node's conditions flipped last, and which boot that was."""
