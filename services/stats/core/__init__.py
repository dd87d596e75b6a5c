"""From counters to a Summary, without I/O."""
