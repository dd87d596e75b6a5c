"""What stats reads: cgroups, /proc, file systems."""
