"""One outside thing a file: Docker Engine, the node's directories and cgroups, pods.db."""
