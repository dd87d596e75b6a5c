"""The labels that a node gives itself."""

from __future__ import annotations

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
