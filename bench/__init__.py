"""`python -m bench`: how fast and how big a node is on this machine, beside the kubelet's figures and the targets.

A benchmark, never a test: nothing here fails because something was slow. Each figure is told with the load of the
machine while it was taken, and a miss with its parts.
"""
