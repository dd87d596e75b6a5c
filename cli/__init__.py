"""The `podbus` command, and the supervisor behind `podbus up`. May import everything; nothing imports it."""
