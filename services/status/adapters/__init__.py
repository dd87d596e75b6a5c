"""status.db, and this machine."""
