"""The event history."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("involved", sa.Text, nullable=False),
        sa.Column("involved_namespace", sa.Text, nullable=False),
        sa.Column("involved_name", sa.Text, nullable=False),
        sa.Column("involved_uid", sa.Text, nullable=False),
        sa.Column("component", sa.Text, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("first_seen", sa.Float, nullable=False),
        sa.Column("last_seen", sa.Float, nullable=False),
    )
    op.create_index("events_last_seen", "events", ["last_seen"])
    op.create_index("events_involved", "events", ["involved_namespace", "involved_name"])
    op.create_table(
        "seen_events",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("time", sa.Float, nullable=False),
    )
    op.create_index("seen_events_time", "seen_events", ["time"])
