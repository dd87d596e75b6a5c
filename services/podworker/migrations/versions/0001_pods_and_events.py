"""The pods that this node's workers own, and their events not yet handed over."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "pods",
        sa.Column("uid", sa.Text, primary_key=True),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("gen", sa.Integer, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("admitted", sa.Integer, nullable=False, server_default="0"),
        sa.Column("ended", sa.Integer, nullable=False, server_default="0"),
        sa.Column("cpu_milli", sa.Integer, nullable=False, server_default="0"),
        sa.Column("memory_bytes", sa.Integer, nullable=False, server_default="0"),
        sa.Column("host_ports", sa.Text, nullable=False, server_default="[]"),
        sa.Column("memory", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("rev", sa.Integer, nullable=False),
    )
    op.create_index("pods_slot", "pods", ["slot"])
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
