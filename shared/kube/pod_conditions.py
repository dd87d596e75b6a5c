"""Which of a pod's conditions the node writes; the others are told by whoever set them (readiness gates)."""

from __future__ import annotations

NODE_CONDITIONS = frozenset(
    (
        *("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled", "DisruptionTarget"),
        *("PodResizePending", "PodResizeInProgress", "AllContainersRestarting"),
    )
)
