"""source owns what should run: it reads manifests, and publishes pods and the state of each source.

Out: bucket podbus_pods (`pod.<uid>`, `source.<name>`), events. In: query `sources`, command `reload`.
"""
