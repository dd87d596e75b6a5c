"""Which pods have ended a short while ago: an old view of the bus must not start them again."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "ended_pods",
        sa.Column("uid", sa.Text, primary_key=True),
        sa.Column("gen", sa.Integer, nullable=False),
        sa.Column("ended_at", sa.Float, nullable=False),
    )
