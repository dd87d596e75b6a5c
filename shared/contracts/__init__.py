"""What services say to each other: every subject, bucket and message in one registry. Pure data, no I/O."""
