"""Alembic's entry: all of it is in shared.storage.migrate."""

from shared.storage.migrate import run_environment

run_environment()
