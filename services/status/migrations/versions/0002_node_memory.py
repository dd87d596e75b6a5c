"""What is remembered of the node's conditions."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "node",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("memory", sa.Text, nullable=False),
    )
