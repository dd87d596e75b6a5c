"""Which pods refer to which ConfigMaps and Secrets, what of it is missing, and whom a change concerns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from services.source.core.field_errors import quote
from services.source.core.manifest import ObjectKey, describe
from services.source.core.problems import Problem, Severity
from services.source.core.state import SourceObject
from shared.kube.pod import Pod
from shared.kube.references import PULL_SECRETS, ConfigRef, Use, uses

_WAITED_FOR = "a container that runs goes on with what it was given; one that starts waits for it"
_NOT_WAITED_FOR = "images are pulled without it"


@dataclass(frozen=True, slots=True)
class Referrer:
    """A pod, and what it refers to."""

    pod: SourceObject
    uses: tuple[Use, ...]

    def refers_to(self, ref: ConfigRef) -> bool:
        return any(use.ref == ref for use in self.uses)

    def key(self, ref: ConfigRef) -> ObjectKey:
        """The object in the pod's namespace."""
        return ObjectKey(ref.kind, self.pod.namespace, ref.name)


def referrer(pod: SourceObject) -> Referrer:
    """`pod` is an accepted one: its body conforms to v1.Pod."""
    return Referrer(pod, tuple(uses(msgspec.convert(pod.body, Pod))))


Configs = Mapping[ObjectKey, SourceObject]


def missing_references(referrers: Iterable[Referrer], configs: Configs) -> list[Problem]:
    """A warning per pod and object: the manifest may be on its way, or have been removed under a running pod."""
    problems: list[Problem] = []
    for one in referrers:
        places: dict[ConfigRef, list[str]] = {}
        for use in one.uses:
            if not use.optional and one.key(use.ref) not in configs:
                places.setdefault(use.ref, []).append(use.where)
        for ref, where in places.items():
            problems.append(
                Problem(
                    Severity.WARNING,
                    one.pod.path,
                    f"{describe(one.pod.key)} needs {ref.kind} {quote(f'{one.pod.namespace}/{ref.name}')}"
                    f" ({', '.join(dict.fromkeys(where))}), which no manifest holds",
                    one.pod.line,
                    one.pod.document,
                    hint=_NOT_WAITED_FOR if {*where} == {PULL_SECRETS} else _WAITED_FOR,
                )
            )
    return problems


def concerned(referrers: Iterable[Referrer], before: Configs, after: Configs) -> list[str]:
    """UIDs of the pods that refer to an object that has changed, come or gone."""
    changed = {
        key
        for key in {*before, *after}
        if (old := before.get(key)) is None or (new := after.get(key)) is None or old.hash != new.hash
    }
    return [one.pod.uid for one in referrers if any(one.key(use.ref) in changed for use in one.uses)]
