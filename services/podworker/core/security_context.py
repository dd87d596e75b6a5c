"""Security contexts -> what the engine is asked for (lifecycle 7.4). A container's fields go before the pod's, one by
one."""

from __future__ import annotations

from pathlib import PurePosixPath

import msgspec

from services.podworker.core.events_text import full_name
from services.podworker.core.node_facts import NodeFacts
from shared.kube.names import APP_ARMOR_ANNOTATION_PREFIX
from shared.kube.pod import Container, Pod
from shared.kube.security import PodSecurityContext, Profile, SecurityContext

RUNTIME_DEFAULT = "RuntimeDefault"
UNCONFINED = "Unconfined"
LOCALHOST = "Localhost"


class ContainerSecurity(msgspec.Struct, frozen=True, kw_only=True):
    """What a container may do, beside its user and groups."""

    privileged: bool = False
    cap_add: tuple[str, ...] = ()
    cap_drop: tuple[str, ...] = ()
    """Without `CAP_`."""
    read_only_root: bool = False
    options: tuple[str, ...] = ("seccomp=unconfined",)
    """The engine's, but for a seccomp profile in a file."""
    seccomp_file: str = ""
    """The host's, JSON; "" = `options` say it."""


def container_security(pod: Pod, container: Container, node: NodeFacts) -> ContainerSecurity:
    context = container.security_context
    seccomp = _seccomp(pod, container, node)
    options = ["no-new-privileges"] if not context.allow_privilege_escalation else []
    if seccomp.type == UNCONFINED:
        options.append("seccomp=unconfined")
    options += _app_armor_options(app_armor_profile(pod, container))
    is_local = seccomp.type == LOCALHOST
    return ContainerSecurity(
        privileged=context.privileged,
        cap_add=tuple(map(_short, context.capabilities.add)),
        cap_drop=tuple(map(_short, context.capabilities.drop)),
        read_only_root=context.read_only_root_filesystem,
        options=tuple(options),
        seccomp_file=seccomp_path(node, seccomp.localhost_profile) if is_local else "",
    )


def seccomp_path(node: NodeFacts, profile: str) -> str:
    """Where a Localhost profile is: below `<data>/seccomp`."""
    return str(PurePosixPath(node.data_dir, "seccomp", profile))


def app_armor_profile(pod: Pod, container: Container) -> Profile | None:
    """The container's, else that of the annotation that came before the field, else the pod's."""
    noted = pod.metadata.annotations.get(APP_ARMOR_ANNOTATION_PREFIX + container.name, "")
    return container.security_context.app_armor_profile or _noted(noted) or pod.spec.security_context.app_armor_profile


def wants_app_armor(pod: Pod) -> bool:
    """Whether a profile is asked for; unconfined needs none."""
    spec = pod.spec
    profiles = [app_armor_profile(pod, container) for container in (*spec.init_containers, *spec.containers)]
    return any(profile is not None and profile.type != UNCONFINED for profile in profiles)


def non_root_fault(pod: Pod, container: Container, image_user: str) -> str:
    """Why the container would run as root though it must not; "" = it doesn't. The kubelet's words."""
    own, of_pod = container.security_context, pod.spec.security_context
    must_not = own.run_as_non_root if own.run_as_non_root is not None else of_pod.run_as_non_root
    if not must_not:
        return ""
    meta = pod.metadata
    where = f'(pod: "{full_name(meta.namespace, meta.name, meta.uid)}", container: {container.name})'
    if (user := _run_as_user(own, of_pod)) is not None:
        return "" if user else f"container's runAsUser breaks non-root policy {where}"
    name = image_own_user(image_user)
    if not is_number(name):
        return (
            f"container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root"
            f" {where}"
        )
    return "" if int(name) else f"container has runAsNonRoot and image will run as root {where}"


def container_user(pod: Pod, container: Container, image_user: str) -> str:
    """`user[:group]` to ask for: never empty, as the kubelet asks for the image's own user by name."""
    own, of_pod = container.security_context, pod.spec.security_context
    user = _run_as_user(own, of_pod)
    group = own.run_as_group if own.run_as_group is not None else of_pod.run_as_group
    name = image_own_user(image_user) if user is None else str(user)
    return name if group is None else f"{name}:{group}"


def sandbox_user(pod: Pod) -> str:
    """The pod's; "" = the sandbox image's own, also for a group without a user."""
    context = pod.spec.security_context
    if context.run_as_user is None:
        return ""
    return str(context.run_as_user) + ("" if context.run_as_group is None else f":{context.run_as_group}")


def image_own_user(image_user: str) -> str:
    """kubelet: the image's uid or user name without its group; an image without a USER counts as uid 0."""
    return image_user.split(":", 1)[0] or "0"


def supplementary_groups(pod: Pod) -> tuple[str, ...]:
    """Of every process of the pod: the group that its volumes belong to, then the others."""
    context = pod.spec.security_context
    first = [] if context.fs_group is None else [context.fs_group]
    return tuple(str(group) for group in [*first, *context.supplemental_groups])


def _run_as_user(own: SecurityContext, of_pod: PodSecurityContext) -> int | None:
    return own.run_as_user if own.run_as_user is not None else of_pod.run_as_user


def is_number(user: str) -> bool:
    return user.isascii() and user.isdigit()


def _seccomp(pod: Pod, container: Container, node: NodeFacts) -> Profile:
    given = container.security_context.seccomp_profile or pod.spec.security_context.seccomp_profile
    return given or Profile(type=RUNTIME_DEFAULT if node.seccomp_default else UNCONFINED)


def _app_armor_options(profile: Profile | None) -> list[str]:
    """RuntimeDefault is what the engine does unasked."""
    match profile:
        case Profile(type="Unconfined"):
            return ["apparmor=unconfined"]
        case Profile(type="Localhost", localhost_profile=name):
            return [f"apparmor={name}"]
        case _:
            return []


def _noted(annotation: str) -> Profile | None:
    match annotation.partition("/"):
        case ("runtime", "/", "default"):
            return Profile(type=RUNTIME_DEFAULT)
        case ("unconfined", "", ""):
            return Profile(type=UNCONFINED)
        case ("localhost", "/", name):
            return Profile(type=LOCALHOST, localhost_profile=name)
        case _:
            return None


def _short(capability: str) -> str:
    return capability[4:] if capability[:4].upper() == "CAP_" else capability
