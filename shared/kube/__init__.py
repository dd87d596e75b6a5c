"""Kubernetes' own words: ids, names, quantities, durations, the pod and its status. Pure: no I/O, no clock."""
