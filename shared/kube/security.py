"""The part of pods' and containers' security contexts that podbus acts on, frozen like shared.kube.pod."""

from __future__ import annotations

import msgspec


class _Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class Profile(_Object, frozen=True, kw_only=True):
    """Of seccomp or AppArmor."""

    type: str
    """RuntimeDefault, Unconfined or Localhost."""
    localhost_profile: str = ""
    """seccomp: a file below `<data>/seccomp`; AppArmor: the name of a loaded profile."""


class Capabilities(_Object, frozen=True, kw_only=True):
    """Names with or without `CAP_`, or ALL."""

    add: list[str] = []
    drop: list[str] = []


class SecurityContext(_Object, frozen=True, kw_only=True):
    """Of a container. What isn't set is the pod's."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    privileged: bool = False
    allow_privilege_escalation: bool = True
    capabilities: Capabilities = Capabilities()
    read_only_root_filesystem: bool = False
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None


class Sysctl(_Object, frozen=True, kw_only=True):
    name: str
    value: str = ""


class PodSecurityContext(_Object, frozen=True, kw_only=True):
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    fs_group: int | None = None
    supplemental_groups: list[int] = []
    supplemental_groups_policy: str = "Merge"
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None
    sysctls: list[Sysctl] = []
