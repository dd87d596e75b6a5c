"""Whatever two sources say in whatever order: a name and a UID are one pod's, and what runs is not taken away."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from services.source.core.manifest import ObjectKey
from services.source.core.merge import Listing, SourcePlan, plan_sources, replan
from services.source.core.state import SourceObject, SourceState

NODE = "n1"
NAMES, UIDS = ("a", "b", "c"), ("", "u", "v")
Pods = tuple[tuple[str, str], ...]

listings = st.lists(
    st.tuples(
        st.sampled_from(("file", "http")),
        st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(UIDS)), max_size=4).map(tuple),
    ),
    max_size=8,
)


def text(pods: Pods) -> bytes:
    documents = [
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{f', uid: {uid}' if uid else ''}}}\n"
        "spec: {containers: [{name: c, image: x}]}\n"
        for name, uid in pods
    ]
    return "---\n".join(documents).encode()


class Node:
    def __init__(self) -> None:
        self.states = {"file": SourceState(), "http": SourceState()}

    def others(self, source: str) -> dict[str, dict[ObjectKey, SourceObject]]:
        return {name: dict(state.running) for name, state in self.states.items() if name != source}

    def say(self, source: str, pods: Pods) -> SourcePlan:
        place = "/m/a.yaml" if source == "file" else "http://m/"
        files = {place: text(pods)} if pods or source == "http" else {}
        listing = Listing("/m" if source == "file" else place, files)
        plan = plan_sources(self.states[source], listing, NODE, 1.0, source=source, others=self.others(source))
        self.states[source] = plan.state
        return plan

    def again(self, source: str) -> SourcePlan:
        plan = replan(self.states[source], 1.0, self.others(source))
        self.states[source] = plan.state
        return plan

    @property
    def running(self) -> list[SourceObject]:
        return [item for state in self.states.values() for item in state.running.values()]


@settings(deadline=None, max_examples=40)
@given(listings)
def test_no_name_and_no_uid_is_two_pods(said: list[tuple[str, Pods]]) -> None:
    node = Node()
    for source, pods in said:
        node.say(source, pods)
        assert len({item.name for item in node.running}) == len(node.running)
        assert len({item.uid for item in node.running}) == len(node.running)


@settings(deadline=None, max_examples=40)
@given(listings)
def test_within_a_source_a_uid_keeps_its_name(said: list[tuple[str, Pods]]) -> None:
    node = Node()
    known: dict[tuple[str, str], str] = {}
    for source, pods in said:
        node.say(source, pods)
        for item in node.states[source].running.values():
            assert known.setdefault((source, item.uid), item.name) == item.name


@settings(deadline=None, max_examples=40)
@given(listings)
def test_what_runs_and_is_still_offered_is_never_replaced_by_another(said: list[tuple[str, Pods]]) -> None:
    node = Node()
    for source, pods in said:
        before = dict(node.states[source].running)
        node.say(source, pods)
        after = node.states[source].running
        for key, item in before.items():
            if item.uid in UIDS[1:] and (item.key.name, item.uid) in pods:
                assert after[key].uid == item.uid and after[key].gen == item.gen


@settings(deadline=None, max_examples=40)
@given(listings)
def test_looking_again_changes_nothing_unless_the_other_has_given_something_up(said: list[tuple[str, Pods]]) -> None:
    node = Node()
    for source, pods in said:
        node.say(source, pods)
    for _ in range(2):
        node.again("file"), node.again("http")
    settled = {name: dict(state.running) for name, state in node.states.items()}
    node.again("file"), node.again("http")
    assert settled == {name: dict(state.running) for name, state in node.states.items()}
