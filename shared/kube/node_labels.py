"""The labels that a node gives itself."""

from __future__ import annotations

from shared.kube.validation_names import label_value_errors, qualified_name_errors

_GO_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "armv6l": "arm",
    "armv7l": "arm",
    "i386": "386",
    "i686": "386",
    "ppc64le": "ppc64le",
    "riscv64": "riscv64",
    "s390x": "s390x",
}


def go_architecture(machine: str) -> str:
    """uname's machine -> Go's GOARCH, which labels and images use."""
    return _GO_ARCHITECTURES.get(machine, machine)


def node_labels(name: str, architecture: str) -> dict[str, str]:
    """kubelet 1.36: the labels that a node gives itself."""
    return {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }


_RESERVED = ("kubernetes.io", "k8s.io")
_FOR_NODES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KNOWN = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    }
)


def parse_node_labels(text: str) -> tuple[dict[str, str], list[str]]:
    """`a=b,c=d` -> labels, errors.

    kubelet 1.36: of the names that Kubernetes reserves a node may give itself only the known ones, and those below
    kubelet.kubernetes.io and node.kubernetes.io.
    """
    labels: dict[str, str] = {}
    wrong: list[str] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        texts = [] if equals else ["must be name=value"]
        texts += qualified_name_errors(name) + label_value_errors(value)
        if not texts and not _is_allowed(name):
            texts = ["is reserved; a node may give itself only the labels of Kubernetes that name its place and kind"]
        wrong += [f"{item!r}: {one}" for one in texts]
        labels[name] = value
    return ({} if wrong else labels), wrong


def _is_allowed(name: str) -> bool:
    space, slash, _ = name.partition("/")
    if not slash or not _is_within(space, _RESERVED):
        return True
    return name in _KNOWN or _is_within(space, _FOR_NODES)


def _is_within(space: str, domains: tuple[str, ...]) -> bool:
    return any(space == domain or space.endswith(f".{domain}") for domain in domains)
