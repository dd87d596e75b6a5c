"""The tables of pods.db."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, MetaData, Table, Text

metadata = MetaData()

pods = Table(
    "pods",
    metadata,
    Column("uid", Text, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    # shared.kube.ids.slot_of: only the worker that holds this slot writes the row.
    Column("slot", Integer, nullable=False),
    Column("source", Text, nullable=False),
    Column("gen", Integer, nullable=False),
    Column("hash", Text, nullable=False),
    # What admission sums up, over rows with admitted = 1 and ended = 0.
    Column("admitted", Integer, nullable=False, server_default="0"),
    Column("ended", Integer, nullable=False, server_default="0"),
    Column("cpu_milli", Integer, nullable=False, server_default="0"),
    Column("memory_bytes", Integer, nullable=False, server_default="0"),
    # JSON: [[protocol, host IP, port], ...]
    Column("host_ports", Text, nullable=False, server_default="[]"),
    # JSON: {"ephemeral-storage": 1073741824, "hugepages-2Mi": 0, "example.com/fuse": 1, ...}
    Column("amounts", Text, nullable=False, server_default="{}"),
    # PodMemory as JSON.
    Column("memory", Text, nullable=False),
    # v1.Pod as JSON; empty for an orphan known only by its labels.
    Column("body", LargeBinary, nullable=False),
    Column("rev", Integer, nullable=False),
    Index("pods_slot", "slot"),
)

ended_pods = Table(
    "ended_pods",
    metadata,
    Column("uid", Text, primary_key=True),
    Column("gen", Integer, nullable=False),
    Column("ended_at", Float, nullable=False),
)
"""Pods whose source took them away and whose rows are gone; each stays a short while."""

pulled_images = Table(
    "pulled_images",
    metadata,
    # sha256:...; empty while a pull is under way, or was when its worker died.
    Column("image_id", Text, primary_key=True),
    # With its tag, as the pod asked for it.
    Column("reference", Text, primary_key=True),
    # 0: it was on the engine already, the pull only confirmed it.
    Column("is_ours", Integer, nullable=False),
    Column("pulled_at", Float, nullable=False),
    Column("used_at", Float, nullable=False),
    # JSON: fingerprints of the credentials that were good for it; "" = none was needed.
    Column("access", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("time", Float, nullable=False),
    # shared.contracts.events.Event as JSON.
    Column("body", Text, nullable=False),
    sqlite_autoincrement=True,
)
"""Events that status has not acknowledged yet, oldest first by seq."""
