"""Labels, annotations and container names, as dockershim and cri-dockerd wrote them, plus podbus' own."""

from __future__ import annotations

from typing import NamedTuple

CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_SEEN = "kubernetes.io/config.seen"
CONFIG_SOURCE = "kubernetes.io/config.source"
APP_ARMOR_ANNOTATION_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
"""Before the container's name: what profiles were asked for by until there was a field."""

LABEL_POD_NAME = "io.kubernetes.pod.name"
LABEL_POD_NAMESPACE = "io.kubernetes.pod.namespace"
LABEL_POD_UID = "io.kubernetes.pod.uid"
LABEL_CONTAINER_NAME = "io.kubernetes.container.name"
LABEL_DOCKER_TYPE = "io.kubernetes.docker.type"
LABEL_SANDBOX_ID = "io.kubernetes.sandbox.id"
LABEL_LOG_PATH = "io.kubernetes.container.logpath"
TYPE_SANDBOX = "podsandbox"
TYPE_CONTAINER = "container"
SANDBOX_CONTAINER = "POD"

LABEL_INSTANCE = "podbus.instance"
"""The id kept in the data directory. A container without it (or with another's) is never touched."""
LABEL_SIDECAR = "podbus.sidecar"
"""A sidecar's place among the init containers: enough to end a pod in order whose spec is gone."""
LABEL_PRIVATE_COMMAND = "podbus.private-command"
"""Set when the command spells a Secret's value out: the engine's words about its start are withheld."""
LABEL_PRIVATE_VARIABLES = "podbus.private-variables"
"""A JSON list of the variables that hold a Secret's value: it is masked in what is taken from the log."""

ANNOTATION_HASH = "annotation.io.kubernetes.container.hash"
ANNOTATION_RESTART_COUNT = "annotation.io.kubernetes.container.restartCount"
ANNOTATION_TERMINATION_PATH = "annotation.io.kubernetes.container.terminationMessagePath"
ANNOTATION_TERMINATION_POLICY = "annotation.io.kubernetes.container.terminationMessagePolicy"
ANNOTATION_GRACE = "annotation.io.kubernetes.pod.terminationGracePeriod"
ANNOTATION_PORTS = "annotation.io.kubernetes.container.ports"
ANNOTATION_PRE_STOP = "annotation.io.kubernetes.container.preStopHandler"


class ContainerName(NamedTuple):
    """The parts of `k8s_<container>_<pod>_<namespace>_<uid>_<attempt>`; "_" can't occur inside a part."""

    container: str
    pod: str
    namespace: str
    uid: str
    attempt: int

    def __str__(self) -> str:
        return f"k8s_{self.container}_{self.pod}_{self.namespace}_{self.uid}_{self.attempt}"


def parse_container_name(name: str) -> ContainerName | None:
    """Docker's name (with or without "/") -> its parts, or None when it isn't of that form.

    A seventh part, the random suffix that dockershim appends after a conflict, is accepted.
    """
    parts = name.removeprefix("/").split("_")
    if len(parts) not in (6, 7) or parts[0] != "k8s" or not parts[5].isdigit():
        return None
    return ContainerName(parts[1], parts[2], parts[3], parts[4], int(parts[5]))
