"""Pure decisions about pods: frozen data in, actions and reasons out. No I/O, no clock, no randomness."""
