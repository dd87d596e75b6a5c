"""The Kubernetes whose behaviour podbus follows.

Tools parse kubeletVersion as a semantic version and decide by it what a node can do, so it leads there, and podbus' own
version is its build metadata.
"""

KUBERNETES_VERSION = "v1.36.0"
