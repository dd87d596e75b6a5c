"""Messages and time in, decisions of the core, ports out."""
