"""What all sources do alike with a listing: core decides, source.db remembers, the bus and the log are told."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

import msgspec

from services.source.core.api_pods import ApiListing, deletion_grace, mirrors_of, plan_api, refusal
from services.source.core.merge import Listing, SourcePlan, plan_sources, replan
from services.source.core.problems import Problem, Severity
from services.source.core.state import SourceObject, SourceState, restored_state, stored_objects
from services.source.core.static_pods import canonical_json
from services.source.handlers.configs import ConfigDesk
from services.source.handlers.neighbours import Neighbours
from services.source.handlers.publish import Publisher
from services.source.ports import SourceStore, StoreUnavailable
from shared.contracts.envelope import VERSION
from shared.contracts.events import InvolvedObject
from shared.contracts.pods import FileProblem, MirrorPod, PodDesired, SkippedFile, SourceMarker, SourceName
from shared.runtime.clock import Clock
from shared.runtime.event_ring import EventRing

log = logging.getLogger("podbus.source")

MAX_TOLD = 300
MAX_TEXT = 1000
"""Problems of each kind, and characters of each text, in the marker: well under the bus's limit of 2 MiB."""


@dataclass(frozen=True)
class FeedContext:
    """What all sources share."""

    store: SourceStore
    publisher: Publisher
    events: EventRing
    clock: Clock
    neighbours: Neighbours
    configs: ConfigDesk
    node: str
    epoch: str
    strict: bool


class Feed:
    """One source's state and its way out. Its owner gives it listings, and looks again when `woken` is set."""

    def __init__(self, source: SourceName, origin: str, context: FeedContext) -> None:
        """`origin` is shown, so it has no credentials."""
        self.source: SourceName = source
        self.origin = origin
        self.woken = asyncio.Event()
        """What other sources have changed."""
        self._context = context
        self._state = SourceState()
        self._ready = False
        self._saved: list[object] = []
        self._told: set[tuple[str, str]] = set()
        self._store_trouble = ""
        self._mirrors: list[MirrorPod] = []

    def recover(self) -> None:
        """The last good set of before. A lost database only makes generations start higher: they follow the clock,
        so that no worker takes a newer pod for an older one."""
        now = int(self._context.clock.now() * 1000)
        try:
            known = self._context.store.load(self.source, self.origin)
        except StoreUnavailable as error:
            log.error("source.db not read, starting from the %s source alone error=%s", self.source, error)
            self._state = SourceState(gen=now)
        else:
            self._state = restored_state(known.rows, gen=max(known.gen, now), listed_at=known.listed_at)
        self._context.neighbours.join(self.source, self._state, self.woken.set)

    async def take(self, listing: Listing | ApiListing | None) -> SourcePlan:
        """Decide, remember, publish: milliseconds for a hundred files. None = nothing was read anew. In a thread,
        since a hostile file of 10 MiB can take seconds, and the loop must turn meanwhile."""
        context = self._context
        async with context.neighbours.planning:
            neighbours, now = context.neighbours, context.clock.now()
            gen = max(self._state.gen, neighbours.gen)
            state = replace(self._state, gen=gen, retired={**neighbours.retired, **self._state.retired})
            others = neighbours.others(self.source)
            if listing is None:
                plan = await asyncio.to_thread(replan, state, now, others)
            elif isinstance(listing, ApiListing):
                if not listing.error:
                    self._mirrors = mirrors_of(listing.pods)
                plan = await asyncio.to_thread(plan_api, state, listing, now, others)
            else:
                plan = await asyncio.to_thread(
                    plan_sources,
                    state,
                    listing,
                    context.node,
                    now,
                    source=self.source,
                    strict=context.strict,
                    others=others,
                )
            self._state = plan.state
            context.neighbours.planned(self.source, plan)
        # A directory that isn't there yet is an empty one; who hasn't answered may want anything.
        self._ready = self._ready or self.source == "file" or _is_complete(listing)
        # Before the pods are on the bus: whoever sees one may ask for what it refers to.
        missing = context.configs.took(self.source, plan, is_listed=self._ready and listing is not None)
        problems = [*plan.problems, *context.neighbours.problems_at(self.source), *missing]
        if trouble := self._remember(plan):
            problems.append(trouble)
        context.publisher.want(self._marker(plan, problems), {pod.uid: self._desired(pod) for pod in plan.pods})
        self._tell(problems)
        return plan

    async def published(self) -> None:
        """Return when the bucket holds all that this source wants."""
        await self._context.publisher.published(self.source)

    def _remember(self, plan: SourcePlan) -> Problem | None:
        rows = stored_objects(plan.state)
        content: list[object] = [plan.state.present, *rows]
        if content == self._saved:
            return None
        try:
            self._context.store.save(self.source, self.origin, rows, plan.state.gen, plan.state.listed_at)
        except StoreUnavailable as error:
            if not self._store_trouble:
                log.error("source.db not written error=%s", error)
            self._store_trouble = str(error)
            return Problem(
                Severity.WARNING,
                self.origin,
                f"the last good set cannot be remembered: {error}",
                hint="pods go on; after a restart a broken file's last good version would be unknown",
            )
        self._store_trouble = ""
        self._saved = content
        return None

    def _desired(self, pod: SourceObject) -> PodDesired:
        return PodDesired(
            v=VERSION,
            node=self._context.node,
            ts=self._context.clock.now(),
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            source=self.source,
            gen=pod.gen,
            hash=pod.hash,
            seen=pod.seen,
            body=msgspec.Raw(canonical_json(pod.body)),
            refused=refusal(pod.body) if self.source == "api" else "",
            deletion_grace=deletion_grace(pod.body) if self.source == "api" else None,
        )

    def _marker(self, plan: SourcePlan, problems: list[Problem]) -> SourceMarker:
        return SourceMarker(
            v=VERSION,
            node=self._context.node,
            ts=self._context.clock.now(),
            source=self.source,
            ready=self._ready,
            epoch=self._context.epoch,
            uids=[pod.uid for pod in plan.pods],
            origin=self.origin,
            listed_at=plan.state.listed_at,
            errors=_on_the_bus([p for p in problems if p.is_error]),
            warnings=_on_the_bus([p for p in problems if not p.is_error]),
            skipped=[SkippedFile(path=s.path, reason=s.reason) for s in plan.skipped[:MAX_TOLD]],
            mirrors=self._mirrors,
        )

    def _tell(self, problems: list[Problem]) -> None:
        """Each problem once, to the log and as an event, until it goes and comes again."""
        current = {(p.path, p.text()): p for p in problems}
        for key, problem in current.items():
            if key in self._told:
                continue
            level = logging.ERROR if problem.is_error else logging.WARNING
            log.log(level, "manifest %s", problem.text())
            self._context.events.tell(
                "Warning",
                problem.reason or ("InvalidManifest" if problem.is_error else "ManifestWarning"),
                problem.text(),
                InvolvedObject(kind="Source", name=self.source, uid=problem.path),
            )
        for path in {path for path, _ in self._told} - {path for path, _ in current}:
            log.info("manifest %s: sound again, or gone", path)
        self._told = set(current)


def _is_complete(listing: Listing | ApiListing | None) -> bool:
    if isinstance(listing, ApiListing):
        return not listing.error
    return listing is not None and not listing.missing


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
