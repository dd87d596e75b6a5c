"""stats: what the node, its pods and their containers use, and two minutes of its history.

Reads cgroups and /proc by the ids and pids in the status bucket; needs no Docker and keeps nothing on disk.
Answers `stats.q.summary`.
"""
