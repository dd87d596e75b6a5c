"""A listing and the last state decide what runs: a fault never removes a pod (design 7)."""

# ruff: noqa: E501 - a table with one row per rule reads best unbroken

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.source.core.files import SkippedFile
from services.source.core.merge import Listing, SourcePlan, plan_sources
from services.source.core.state import SourceObject, SourceState, restored_state, stored_objects

NODE = "node1"
BROKEN = "a: [\n"
NO_IMAGE = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c}]}\n"


def pod(name: str, image: str = "x:1", uid: str = "") -> str:
    given_uid = f", uid: {uid}" if uid else ""
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{given_uid}}}\n"
        f"spec: {{containers: [{{name: c, image: {image}}}]}}\n"
    )


def secret(value: str) -> str:
    return f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{k: {value}}}\n"


class Source:
    """Plays listings one after the other."""

    def __init__(self, state: SourceState | None = None) -> None:
        self.state = state or SourceState()
        self.now = 1000.0

    def see(self, **files: str) -> SourcePlan:
        """A listing of these files (`a=...` is /m/a.yaml)."""
        return self.see_as(**files)

    def see_as(self, node: str = NODE, strict: bool = False, /, **files: str) -> SourcePlan:
        """The same with another node name or strictness."""
        return self.list(
            Listing("/m", {f"/m/{name}.yaml": text.encode() for name, text in files.items()}), strict=strict, node=node
        )

    def list(self, listing: Listing, *, strict: bool = False, node: str = NODE) -> SourcePlan:
        self.now += 10
        plan = plan_sources(self.state, listing, node, self.now, strict=strict)
        self.state = plan.state
        return plan


def names(plan: SourcePlan) -> list[str]:
    return [item.name for item in plan.pods]


def images(plan: SourcePlan) -> list[str]:
    return [item.body["spec"]["containers"][0]["image"] for item in plan.pods]


def texts(plan: SourcePlan) -> str:
    return "\n".join(problem.text() for problem in plan.problems)


def test_every_good_pod_of_every_file_runs() -> None:
    plan = Source().see(b=pod("two"), a=pod("one") + "---\n" + pod("three"))
    assert names(plan) == ["one-node1", "three-node1", "two-node1"]
    assert plan.problems == ()


def test_the_same_listing_changes_nothing() -> None:
    source = Source()
    first = source.see(a=pod("one"))
    second = source.see(a=pod("one"))
    assert second.pods == first.pods
    assert second.pods[0].body == first.pods[0].body
    assert second.state.gen == first.state.gen == 1


def test_a_comment_changes_no_pod() -> None:
    source = Source()
    first = source.see(a=pod("one"))
    second = source.see(a="# a note\n" + pod("one"))
    assert [(p.uid, p.hash, p.gen, p.body) for p in second.pods] == [(p.uid, p.hash, p.gen, p.body) for p in first.pods]


def test_an_edit_gives_a_new_uid_and_generation() -> None:
    source = Source()
    (before,) = source.see(a=pod("one")).pods
    (after,) = source.see(a=pod("one", "x:2")).pods
    assert after.uid != before.uid
    assert (before.gen, after.gen) == (1, 2)
    assert after.seen > before.seen


def test_an_edit_of_a_pod_with_a_fixed_uid_keeps_uid_and_first_sight() -> None:
    source = Source()
    (before,) = source.see(a=pod("one", uid="u1")).pods
    (after,) = source.see(a=pod("one", "x:2", uid="u1")).pods
    assert (after.uid, after.seen) == (before.uid, before.seen)
    assert after.gen == before.gen + 1
    assert after.hash != before.hash


def test_first_sight_is_told_in_the_annotation() -> None:
    (item,) = Source().see(a=pod("one")).pods
    assert item.seen == 1010.0
    assert item.body["metadata"]["annotations"]["kubernetes.io/config.seen"] == "1970-01-01T00:16:50.000000Z"


def test_a_removed_file_removes_its_pods() -> None:
    source = Source()
    source.see(a=pod("one"), b=pod("two"))
    assert names(source.see(b=pod("two"))) == ["two-node1"]


def test_an_emptied_directory_removes_all() -> None:
    source = Source()
    source.see(a=pod("one"))
    plan = source.see()
    assert plan.pods == ()
    assert plan.problems == ()


def test_a_removed_document_removes_its_pod() -> None:
    source = Source()
    source.see(a=pod("one") + "---\n" + pod("two"))
    assert names(source.see(a=pod("two"))) == ["two-node1"]


@pytest.mark.parametrize("text", [BROKEN, "", "\ufffe", "a: 1\na: 2\n", "# " + "x" * 11 * 2**20])
def test_the_last_good_version_of_a_file_that_breaks_keeps_running(text: str) -> None:
    source = Source()
    before = source.see(a=pod("one"))
    plan = source.see(a=text)
    assert plan.pods == before.pods
    assert any(problem.is_error for problem in plan.problems)
    assert 'the last good version of Pod "default/one" keeps running' in texts(plan)
    again = source.see(a=text)
    assert (again.pods, again.problems) == (plan.pods, plan.problems)


def test_a_file_that_is_mended_is_told_no_more() -> None:
    source = Source()
    source.see(a=pod("one"))
    source.see(a=BROKEN)
    plan = source.see(a=pod("one", "x:2"))
    assert (images(plan), plan.problems) == (["x:2"], ())


def test_a_file_that_never_was_good_has_no_pods() -> None:
    plan = Source().see(a=BROKEN, b=pod("two"))
    assert names(plan) == ["two-node1"]
    assert "keeps running" not in texts(plan)


def test_a_document_that_breaks_keeps_its_last_good_version_and_the_others_move_on() -> None:
    source = Source()
    source.see(a=pod("one") + "---\n" + pod("two"))
    plan = source.see(a=NO_IMAGE % "one" + "---\n" + pod("two", "x:2"))
    assert sorted(zip(names(plan), images(plan), strict=True)) == [("one-node1", "x:1"), ("two-node1", "x:2")]
    assert "spec.containers[0].image: Required value" in texts(plan)


def test_a_broken_document_with_a_name_does_not_hold_back_the_removal_of_another() -> None:
    source = Source()
    source.see(a=pod("one") + "---\n" + pod("two"))
    assert names(source.see(a=NO_IMAGE % "one")) == ["one-node1"]


def test_a_document_that_cannot_be_told_holds_back_every_removal_in_its_file() -> None:
    source = Source()
    source.see(a=pod("one") + "---\n" + pod("two"), b=pod("three"))
    plan = source.see(a=BROKEN + "---\n" + pod("two"))
    assert sorted(names(plan)) == ["one-node1", "two-node1"]


def test_a_file_that_cannot_be_read_keeps_its_pods() -> None:
    source = Source()
    before = source.see(a=pod("one"))
    plan = source.list(Listing("/m", {}, {"/m/a.yaml": "Permission denied"}))
    assert plan.pods == before.pods
    assert "/m/a.yaml: cannot be read: Permission denied" in texts(plan)
    assert source.see(a=pod("one")).problems == ()


def test_a_directory_that_is_missing_at_the_first_start_is_empty() -> None:
    source = Source()
    plan = source.list(Listing("/m", missing=True))
    assert plan.pods == ()
    assert [problem.is_error for problem in plan.problems] == [False]
    assert names(source.see(a=pod("one"))) == ["one-node1"]


def test_a_directory_that_goes_keeps_its_set_and_the_error_is_told() -> None:
    source = Source()
    before = source.see(a=pod("one"))
    plan = source.list(Listing("/m", missing=True, error="/m: Input/output error"))
    assert plan.pods == before.pods
    assert "/m: /m: Input/output error (the last pods keep running)" in texts(plan)
    assert plan.problems[0].is_error
    assert source.see(a=pod("one")).pods == before.pods


@pytest.mark.parametrize("text", ["hi\n", BROKEN, "", "# none\n", NO_IMAGE % "one"])
def test_a_file_in_place_of_the_directory_that_holds_no_pod_keeps_the_set(text: str) -> None:
    source = Source()
    before = source.see(a=pod("one"), b=pod("two"))
    plan = source.list(Listing("/m", {"/m": text.encode()}))
    assert plan.pods == before.pods
    assert "/m: /m is a file without a pod now, no longer a directory (the last pods keep running)" in texts(plan)
    assert (source.see(a=pod("one")).pods, source.see(a=pod("one")).problems) == (before.pods[:1], ())


def test_a_sound_file_in_place_of_the_directory_is_the_new_set() -> None:
    source = Source()
    source.see(a=pod("one"), b=pod("two"))
    assert names(source.list(Listing("/m", {"/m": pod("three").encode()}))) == ["three-node1"]
    assert names(source.see(a=pod("one"))) == ["one-node1"]


def test_of_two_files_with_the_same_pod_the_first_in_path_order_runs_and_both_are_told() -> None:
    plan = Source().see(b2=pod("web", "x:2"), b1=pod("web", "x:1"))
    assert images(plan) == ["x:1"]
    assert [(problem.path, problem.line) for problem in plan.problems] == [("/m/b1.yaml", 1), ("/m/b2.yaml", 1)]
    assert all(problem.is_error for problem in plan.problems)
    assert "also in /m/b1.yaml:1" in texts(plan)


def test_of_two_files_with_the_same_pod_the_running_one_stays() -> None:
    source = Source()
    before = source.see(z=pod("web", "x:1"))
    plan = source.see(a=pod("web", "x:2"), z=pod("web", "x:1"))
    assert plan.pods == before.pods
    assert "keeps running" in texts(plan)
    # It also stays when it is edited in its own file, and the other takes over when it goes.
    assert images(source.see(a=pod("web", "x:2"), z=pod("web", "x:3"))) == ["x:3"]
    assert images(source.see(a=pod("web", "x:2"))) == ["x:2"]


def test_the_running_pod_stays_when_its_file_breaks_while_another_claims_it() -> None:
    source = Source()
    source.see(z=pod("web", "x:1"))
    assert images(source.see(a=pod("web", "x:2"), z=BROKEN)) == ["x:1"]


def test_the_same_pod_twice_in_one_file_runs_once() -> None:
    source = Source()
    plan = source.see(a=pod("web", "x:1") + "---\n" + pod("web", "x:2"))
    assert images(plan) == ["x:1"]
    assert len(plan.problems) == 2
    # The order of the documents is nothing to go by once one runs.
    assert images(source.see(a=pod("web", "x:2") + "---\n" + pod("web", "x:1"))) == ["x:1"]


def test_two_pods_with_the_same_fixed_uid_do_not_both_run() -> None:
    source = Source()
    assert names(source.see(b=pod("two", uid="u"))) == ["two-node1"]
    plan = source.see(a=pod("one", uid="u"), b=pod("two", uid="u"))
    assert names(plan) == ["two-node1"]
    assert 'the UID "u"' in texts(plan)


def test_the_same_name_in_another_namespace_or_kind_is_no_clash() -> None:
    other = pod("web").replace("name: web", "name: web, namespace: other")
    plan = Source().see(a=pod("web"), b=other, c="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")
    assert len(plan.pods) == 2
    assert len(plan.configs) == 1
    assert plan.problems == ()


def test_skipped_files_are_passed_on() -> None:
    skipped = (SkippedFile("/m/x.bak", "a leftover copy (.bak)"),)
    assert Source().list(Listing("/m", skipped=skipped)).skipped == skipped


def test_strictness_and_the_nodes_name_are_not_remembered_from_before() -> None:
    source = Source()
    text = pod("one") + "xyzzy: 1\n"
    assert names(source.see(a=text)) == ["one-node1"]
    strict = source.see_as(NODE, True, a=text)
    assert names(strict) == ["one-node1"]
    assert any(problem.is_error for problem in strict.problems)
    assert names(source.see_as("other", a=text)) == ["one-other"]


def restart(source: Source) -> Source:
    rows = stored_objects(source.state)
    return Source(restored_state(rows, gen=source.state.gen, listed_at=source.state.listed_at))


def test_a_restart_changes_no_pod() -> None:
    source = Source()
    before = source.see(a=pod("one"), b=pod("two", uid="u"))
    after = restart(source).see(a=pod("one"), b=pod("two", uid="u"))
    assert after.pods == before.pods
    assert [item.body for item in after.pods] == [item.body for item in before.pods]
    assert after.state.gen == before.state.gen


def test_a_file_that_broke_during_a_restart_keeps_its_last_good_version() -> None:
    source = Source()
    before = source.see(a=pod("one"))
    after = restart(source).see(a=BROKEN)
    assert [(item.uid, item.hash, item.body) for item in after.pods] == [
        (item.uid, item.hash, item.body) for item in before.pods
    ]


def test_a_directory_that_is_gone_after_a_restart_keeps_its_set() -> None:
    source = Source()
    source.see(a=pod("one"))
    plan = restart(source).list(Listing("/m", missing=True))
    assert names(plan) == ["one-node1"]
    assert plan.problems[0].is_error


def test_no_secret_is_stored() -> None:
    source = Source()
    plan = source.see(a=secret("s3cret") + "---\n" + pod("one"))
    assert [item.kind for item in plan.configs] == ["Secret"]
    rows = stored_objects(plan.state)
    assert [row.document for row in rows] == ["Pod/default/one"]
    assert b"s3cret" not in b"".join(row.body for row in rows)
    assert "s3cret" not in repr(plan)


def test_generations_grow_over_removals_and_restarts() -> None:
    source = Source()
    source.see(a=pod("one"))
    source.see()
    again = restart(source)
    assert [item.gen for item in again.see(a=pod("one")).pods] == [2]


TEXTS = st.sampled_from(
    [pod("a"), pod("a", "x:2"), pod("b"), pod("a") + "---\n" + pod("b"), NO_IMAGE % "a", BROKEN, "", "# none\n", pod("c", uid="u")]
)  # fmt: skip
LISTINGS = st.lists(
    st.dictionaries(st.sampled_from(["p", "q", "r"]), TEXTS, max_size=3) | st.none(), min_size=1, max_size=6
)


@settings(max_examples=80)
@given(LISTINGS)
def test_any_history_keeps_the_rules(history: list[dict[str, str] | None]) -> None:
    """One pod a name and a UID; a pod goes only with its document; what is good in the end is what runs."""
    source = Source()
    for files in history:
        before = {item.name: item for item in plan_pods(source)}
        plan = source.list(Listing("/m", missing=True)) if files is None else source.see(**files)
        assert len({item.name for item in plan.pods}) == len(plan.pods) == len({item.uid for item in plan.pods})
        for name, item in before.items():
            if name not in {kept.name for kept in plan.pods}:
                assert files is not None
                text = files.get(item.path.removeprefix("/m/").removesuffix(".yaml"))
                assert text is None or (
                    text != BROKEN and text != "" and f"metadata: {{name: {item.key.name}" not in text
                )
        assert restored(source).running.keys() == source.state.running.keys()
    final = source.see(p=pod("a"), q=pod("b"))
    assert (names(final), final.problems) == (["a-node1", "b-node1"], ())


def plan_pods(source: Source) -> list[SourceObject]:
    return list(source.state.running.values())


def restored(source: Source) -> SourceState:
    return restored_state(stored_objects(source.state), gen=source.state.gen, listed_at=1)
