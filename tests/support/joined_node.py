"""A node of a test that has joined a cluster. Its name is one that the API server can resolve: localhost."""

from __future__ import annotations

from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.node import Node

NAME = "localhost"
DNS = "clusterDNS: [192.0.2.53]\nclusterDomain: cluster.local\n"


class JoinedNode(Node):
    """API pods have no suffix: `pods` finds them by their own name."""

    def __init__(self, directory: Path, cluster: Cluster, *, workers: int = 1, config: str = DNS) -> None:
        self.kubeconfig = cluster.node_kubeconfig(NAME)
        known = (
            f"authentication: {{x509: {{clientCAFile: {cluster.ca.pair.certificate}}}, webhook: {{enabled: true}}}}\n"
            "authorization: {mode: Webhook}\n"
        )
        super().__init__(directory, workers=workers, name=NAME, config=known + config)

    @property
    def flags(self) -> list[str]:
        return [*super().flags, "--kubeconfig", str(self.kubeconfig)]
