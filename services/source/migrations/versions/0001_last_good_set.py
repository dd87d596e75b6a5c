"""The last good set of each source."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "objects",
        sa.Column("source", sa.Text, primary_key=True),
        sa.Column("path", sa.Text, primary_key=True),
        sa.Column("document", sa.Text, primary_key=True),
        sa.Column("uid", sa.Text, nullable=False),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("gen", sa.Integer, nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
    )
    op.create_table(
        "sources",
        sa.Column("source", sa.Text, primary_key=True),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("gen", sa.Integer, nullable=False),
        sa.Column("listed_at", sa.Float, nullable=False),
        sa.Column("state", sa.Text, nullable=False, server_default="{}"),
    )
