"""Which images podbus has pulled, for whom and when they were used; what pods ask for beside cpu and memory."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("pods", sa.Column("amounts", sa.Text, nullable=False, server_default="{}"))
    op.create_table(
        "pulled_images",
        sa.Column("image_id", sa.Text, primary_key=True),
        sa.Column("reference", sa.Text, primary_key=True),
        sa.Column("is_ours", sa.Integer, nullable=False),
        sa.Column("pulled_at", sa.Float, nullable=False),
        sa.Column("used_at", sa.Float, nullable=False),
        sa.Column("access", sa.Text, nullable=False),
    )
