"""podworker owns containers: it runs each pod's containers on the engine, keeps its row in pods.db, and reports it.

In: bucket podbus_pods; queries `running`, command `stream`. Out: bucket podbus_status (`pod.<uid>`, `runtime`), events.
Several workers share a node: kernel locks decide which pods each one owns.
"""
