"""Which sandbox of a pod is good to start containers in (lifecycle 3.1)."""

from __future__ import annotations

from services.podworker.core.model import RuntimePod, RuntimeSandbox
from shared.kube.pod import Pod


def usable_sandbox(pod: Pod, runtime: RuntimePod) -> RuntimeSandbox | None:
    """The sandbox that containers can be started in, or None when a new one is needed.

    kubelet: it has to be the newest, the only ready one, of the right network mode, and to have an address.
    """
    if not runtime.sandboxes or sum(sandbox.ready for sandbox in runtime.sandboxes) != 1:
        return None
    newest = runtime.sandboxes[0]
    if not newest.ready or newest.host_network != pod.spec.host_network:
        return None
    return newest if newest.ips or newest.host_network else None
