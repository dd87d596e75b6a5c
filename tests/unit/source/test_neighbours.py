"""Who is told when another source has changed something."""

from __future__ import annotations

from services.source.core.merge import Listing, SourcePlan, plan_sources
from services.source.core.state import SourceState
from services.source.handlers.neighbours import Neighbours

FILE, URL = "/m/a.yaml", "http://m/"


class Two:
    """A directory and a URL that know of each other; counts the nudges."""

    def __init__(self) -> None:
        self.neighbours = Neighbours()
        self.states = {"file": SourceState(), "http": SourceState()}
        self.nudged: list[str] = []
        for source in self.states:
            self.neighbours.join(source, SourceState(), lambda source=source: self.nudged.append(source))  # type: ignore[misc]

    def say(self, source: str, *pods: str) -> SourcePlan:
        """`name` or `name=uid`."""
        documents = [
            f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{f', uid: {uid}' if uid else ''}}}\n"
            "spec: {containers: [{name: c, image: x}]}\n"
            for name, _, uid in (pod.partition("=") for pod in pods)
        ]
        place = FILE if source == "file" else URL
        files = {place: "---\n".join(documents).encode()} if pods or source == "http" else {}
        plan = plan_sources(
            self.states[source],
            Listing("/m" if source == "file" else URL, files),
            "n1",
            1.0,
            source=source,
            others=self.neighbours.others(source),
        )
        self.states[source] = plan.state
        self.neighbours.planned(source, plan)
        return plan


def test_a_source_without_rivals_wakes_nobody() -> None:
    two = Two()
    two.say("file", "a")
    two.say("http", "b")
    two.say("file")
    assert two.nudged == []


def test_who_is_contested_is_told_once_and_tells_it_at_its_place() -> None:
    two = Two()
    two.say("file", "a")
    two.say("http", "a")
    two.say("http", "a")
    assert two.nudged == ["file"]
    (problem,) = two.neighbours.problems_at("file")
    assert problem.path == FILE and URL in problem.message
    assert two.neighbours.problems_at("http") == ()


def test_who_waits_for_a_name_is_told_when_it_is_free() -> None:
    two = Two()
    two.say("file", "a", "b")
    two.say("http", "a")
    two.nudged.clear()
    two.say("file", "a", "b", "c")
    assert two.nudged == []
    two.say("file", "b")
    assert two.nudged == ["http"]


def test_a_contest_that_is_over_is_told_no_more() -> None:
    two = Two()
    two.say("file", "a")
    two.say("http", "a")
    two.nudged.clear()
    two.say("http", "b")
    assert two.nudged == ["file"]
    assert two.neighbours.problems_at("file") == ()


def test_the_uid_of_a_pod_that_is_gone_is_known_to_all() -> None:
    two = Two()
    two.say("file", "a=u")
    two.say("file")
    assert [key.name for key in two.neighbours.retired.values()] == ["a-n1"]
    assert two.neighbours.retired.keys() == {"u"}


def test_the_newest_generation_is_that_of_any_source() -> None:
    two = Two()
    two.say("file", "a")
    two.say("file", "a", "b")
    two.say("http", "c")
    assert two.neighbours.gen == 2
