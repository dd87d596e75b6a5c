"""status: the truth about this node, told outwards, and what happened on it.

Computes the `node` key of podbus_status from the machine and the runtime's report; keeps the event history in
status.db. Answers `status.c.events` (hand over) and `status.q.events`.
"""
