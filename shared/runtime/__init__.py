"""The one process skeleton: settings, logging, guarded tasks, readiness, watchdog, orderly end."""
