"""The file source: lists on every hint and every 20 s, remembers what was good, tells what is wrong."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from services.source.core.merge import SourcePlan, plan_sources
from services.source.core.problems import Problem, Severity
from services.source.core.state import SourceObject, SourceState, restored_state, stored_objects
from services.source.core.static_pods import canonical_json
from services.source.handlers.publish import Publisher
from services.source.ports import Manifests, SourceStore, StoreUnavailable
from shared.contracts.envelope import VERSION
from shared.contracts.events import InvolvedObject
from shared.contracts.pods import FileProblem, PodDesired, SkippedFile, SourceMarker, SourceName
from shared.runtime.clock import Clock
from shared.runtime.event_ring import EventRing

log = logging.getLogger("podbus.source.file")

SOURCE: SourceName = "file"
MAX_TOLD = 300
MAX_TEXT = 1000
"""Problems of each kind, and characters of each text, in the marker: well under the bus's limit of 2 MiB."""


class FileSource:
    """`run` is a guarded task; `list_now` may be called beside it."""

    def __init__(
        self,
        manifests: Manifests,
        store: SourceStore,
        publisher: Publisher,
        events: EventRing,
        clock: Clock,
        *,
        node: str,
        epoch: str,
        period: float,
        strict: bool,
    ) -> None:
        self._manifests = manifests
        self._store = store
        self._publisher = publisher
        self._events = events
        self._clock = clock
        self._node = node
        self._epoch = epoch
        self._period = period
        self._strict = strict
        self._state = SourceState()
        self._listing = asyncio.Lock()
        self._saved: list[object] = []
        self._told: set[tuple[str, str]] = set()
        self._store_trouble = ""

    def recover(self) -> None:
        """The last good set of before. A lost database only makes generations start higher: they follow the clock,
        so that no worker takes a newer pod for an older one."""
        try:
            known = self._store.load(SOURCE, self._manifests.origin)
        except StoreUnavailable as error:
            log.error("source.db not read, starting from the files error=%s", error)
            self._state = SourceState(gen=int(self._clock.now() * 1000))
            return
        gen = max(known.gen, int(self._clock.now() * 1000))
        self._state = restored_state(known.rows, gen=gen, listed_at=known.listed_at)

    async def run(self) -> None:
        while True:
            changed = asyncio.ensure_future(self._manifests.changed())
            await self.list_now()
            try:
                await asyncio.wait_for(changed, self._period)
            except TimeoutError:
                continue

    async def list_now(self) -> SourcePlan:
        """Read, decide, remember, publish: milliseconds for a hundred files. In a thread, since a hostile file of
        10 MiB can take seconds, and the loop must turn meanwhile."""
        async with self._listing:
            return await self._list()

    async def _list(self) -> SourcePlan:
        plan = await asyncio.to_thread(
            plan_sources,
            self._state,
            self._manifests.listing(),
            self._node,
            self._clock.now(),
            source=SOURCE,
            strict=self._strict,
        )
        self._state = plan.state
        problems = list(plan.problems)
        if trouble := self._remember(plan):
            problems.append(trouble)
        self._publisher.want(self._marker(plan, problems), {pod.uid: self._desired(pod) for pod in plan.pods})
        self._tell(problems)
        return plan

    def _remember(self, plan: SourcePlan) -> Problem | None:
        rows = stored_objects(plan.state)
        content: list[object] = [plan.state.present, *rows]
        if content == self._saved:
            return None
        try:
            self._store.save(SOURCE, self._manifests.origin, rows, plan.state.gen, plan.state.listed_at)
        except StoreUnavailable as error:
            if not self._store_trouble:
                log.error("source.db not written error=%s", error)
            self._store_trouble = str(error)
            return Problem(
                Severity.WARNING,
                self._manifests.origin,
                f"the last good set cannot be remembered: {error}",
                hint="pods go on; after a restart a broken file's last good version would be unknown",
            )
        self._store_trouble = ""
        self._saved = content
        return None

    def _desired(self, pod: SourceObject) -> PodDesired:
        return PodDesired(
            v=VERSION,
            node=self._node,
            ts=self._clock.now(),
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            source=SOURCE,
            gen=pod.gen,
            hash=pod.hash,
            seen=pod.seen,
            body=msgspec.Raw(canonical_json(pod.body)),
        )

    def _marker(self, plan: SourcePlan, problems: list[Problem]) -> SourceMarker:
        return SourceMarker(
            v=VERSION,
            node=self._node,
            ts=self._clock.now(),
            source=SOURCE,
            ready=True,
            epoch=self._epoch,
            uids=[pod.uid for pod in plan.pods],
            origin=self._manifests.origin,
            listed_at=plan.state.listed_at,
            errors=_on_the_bus([p for p in problems if p.is_error]),
            warnings=_on_the_bus([p for p in problems if not p.is_error]),
            skipped=[SkippedFile(path=s.path, reason=s.reason) for s in plan.skipped[:MAX_TOLD]],
        )

    def _tell(self, problems: list[Problem]) -> None:
        """Each problem once, to the log and as an event, until it goes and comes again."""
        current = {(p.path, p.text()): p for p in problems}
        for key, problem in current.items():
            if key in self._told:
                continue
            level = logging.ERROR if problem.is_error else logging.WARNING
            log.log(level, "manifest %s", problem.text())
            self._events.tell(
                "Warning",
                "InvalidManifest" if problem.is_error else "ManifestWarning",
                problem.text(),
                InvolvedObject(kind="Source", name=SOURCE, uid=problem.path),
            )
        for path in {path for path, _ in self._told} - {path for path, _ in current}:
            log.info("manifest %s: sound again, or gone", path)
        self._told = set(current)


def _on_the_bus(problems: list[Problem]) -> list[FileProblem]:
    """The first MAX_TOLD of them, and how many more there are: a message has a size limit, the log has all."""
    told = [
        FileProblem(
            severity="error" if problem.is_error else "warning",
            path=problem.path,
            line=problem.line,
            document=problem.document,
            field=problem.field,
            message=problem.message[:MAX_TEXT],
            hint=problem.hint[:MAX_TEXT],
        )
        for problem in problems[:MAX_TOLD]
    ]
    if rest := problems[MAX_TOLD:]:
        more = f"and {len(rest)} more: see the log of source"
        told.append(FileProblem(severity="error" if rest[0].is_error else "warning", path=rest[0].path, message=more))
    return told
