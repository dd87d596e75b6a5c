"""SQLite by SQLAlchemy core: one file per owning service, its engine, its migrations."""
