"""What a container's own restart policy and rules say of an exit, and else the pod's policy (lifecycle 3.4)."""

from __future__ import annotations

from shared.kube.pod import Container, ContainerRestartRule, Pod, container_named, is_sidecar

RESTART_ALL = "RestartAllContainers"


def may_restart(policy: str, exit_code: int) -> bool:
    """A restart policy's answer for a container that has exited."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def is_plain_init(pod: Pod, name: str) -> bool:
    """Whether it's an init container that runs to its end before the next one starts."""
    return any(c.name == name and not is_sidecar(c) for c in pod.spec.init_containers)


def policy_of(pod: Pod, name: str) -> str:
    """The container's own policy, else the pod's."""
    container = container_named(pod, name)
    return (container.restart_policy if container is not None else "") or pod.spec.restart_policy


def restarts_after_exit(pod: Pod, name: str, exit_code: int) -> bool:
    """Whether a container that exited by itself is started again. An init container that has succeeded isn't, and an
    ephemeral one never."""
    if exit_code == 0 and is_plain_init(pod, name):
        return False
    if any(name == ephemeral.name for ephemeral in pod.spec.ephemeral_containers):
        return False
    container = container_named(pod, name)
    if container is not None and matching_rule(container, exit_code) is not None:
        return True
    return may_restart(policy_of(pod, name), exit_code)


def matching_rule(container: Container, exit_code: int) -> ContainerRestartRule | None:
    """The first rule that speaks of the exit code; whatever its action, the container starts again."""
    return next((rule for rule in container.restart_policy_rules if _matches(rule, exit_code)), None)


def asks_for_all(container: Container, exit_code: int) -> bool:
    """Whether the exit restarts all containers of the pod."""
    rule = matching_rule(container, exit_code)
    return rule is not None and rule.action == RESTART_ALL


def _matches(rule: ContainerRestartRule, exit_code: int) -> bool:
    codes = rule.exit_codes
    if codes is None:
        return False
    return (exit_code in codes.values) == (codes.operator == "In")
