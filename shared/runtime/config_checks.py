"""What the kubelet says of values that podbus doesn't act on, and of values that don't go together.

A file that a kubelet refuses is refused here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shared.runtime.config_values import (
    Reader,
    Wrong,
    check_threshold,
    choice,
    duration,
    mapping,
    read_flag,
    read_text,
    whole,
)

Place = tuple[str, ...]
EVICTION_SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
)
_MANY = 2**31 - 1
_TIME = duration(0.0, 10 * 365 * 86400, "from 0s to ten years")


def _check_time(value: Any) -> None:
    _TIME(value)


CHECKED: Mapping[str, Reader] = {
    "cpuManagerReconcilePeriod": _TIME,
    "configMapAndSecretChangeDetectionStrategy": choice("Watch", "Cache", "Get"),
    "eventBurst": whole(0, _MANY),
    "eventRecordQPS": whole(0, _MANY),
    "evictionMaxPodGracePeriod": whole(-_MANY, _MANY),
    "evictionMinimumReclaim": mapping(EVICTION_SIGNALS, check_threshold),
    "evictionPressureTransitionPeriod": _TIME,
    "evictionSoft": mapping(EVICTION_SIGNALS, check_threshold),
    "evictionSoftGracePeriod": mapping(EVICTION_SIGNALS, _check_time),
    "failCgroupV1": read_flag,
    "failSwapOn": read_flag,
    "hairpinMode": choice("promiscuous-bridge", "hairpin-veth", "none"),
    "iptablesDropBit": whole(0, 31),
    "iptablesMasqueradeBit": whole(0, 31),
    "kubeAPIBurst": whole(0, _MANY),
    "kubeAPIQPS": whole(0, _MANY),
    "maxOpenFiles": whole(0, 2**63 - 1),
    "oomScoreAdj": whole(-1000, 1000),
    "podCIDR": read_text,
    "registryBurst": whole(0, _MANY),
    "registryPullQPS": whole(0, _MANY),
    "rotateCertificates": read_flag,
    "serverTLSBootstrap": read_flag,
    "shutdownGracePeriod": duration(1, 10 * 365 * 86400, "0s or at least 1s"),
    "shutdownGracePeriodCriticalPods": duration(1, 10 * 365 * 86400, "0s or at least 1s"),
}

_Combination = Callable[[Mapping[str, Any]], Iterator[tuple[Place, str]]]


def wrong_values(document: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Field and text of each value, and of each combination, that a kubelet refuses."""
    wrong = set()
    for name, read in CHECKED.items():
        value = document.get(name)
        if value is None or value == "":
            continue
        try:
            read(value)
        except Wrong as error:
            wrong.add(name)
            for text in error.texts:
                yield (name,), text
    for names, combination in _COMBINATIONS:
        if wrong.isdisjoint(names):
            yield from combination(document)


def _soft_eviction(document: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    soft, graces = document.get("evictionSoft") or {}, document.get("evictionSoftGracePeriod") or {}
    for signal in soft:
        if signal not in graces:
            yield ("evictionSoft",), f"{signal}: a grace period must be specified for it in evictionSoftGracePeriod"


def _shutdown(document: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    whole_time = _TIME(document.get("shutdownGracePeriod") or "0s") or 0.0
    critical = _TIME(document.get("shutdownGracePeriodCriticalPods") or "0s") or 0.0
    if critical > whole_time:
        yield ("shutdownGracePeriodCriticalPods",), "must not be greater than shutdownGracePeriod"
    if document.get("shutdownGracePeriodByPodPriority") and (whole_time or critical):
        yield ("shutdownGracePeriodByPodPriority",), "can't be there together with shutdownGracePeriod"


def _system_cgroups(document: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    if document.get("systemCgroups") and not document.get("cgroupRoot"):
        yield ("systemCgroups",), "needs cgroupRoot"


_COMBINATIONS: tuple[tuple[tuple[str, ...], _Combination], ...] = (
    (("evictionSoft", "evictionSoftGracePeriod"), _soft_eviction),
    (("shutdownGracePeriod", "shutdownGracePeriodCriticalPods"), _shutdown),
    ((), _system_cgroups),
)
